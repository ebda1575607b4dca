/* How much of a process's memory is resident, and which code ran while that changed. */
#pragma once

#include "sampler/process.h"

/* Have the process reached through a thread that still has its memory; false if there is none that may be asked. */
bool memory_reach(struct sampled_process *process);

/* A thread was sampled: the one that used the most CPU time in a round is noted with a change. */
void memory_ran(struct sampled_process *process, uint64_t cpu_ns, uint32_t thread, uint32_t stack);

/* Look at the end of a round; a change that is large enough is written down. */
void memory_look(struct sampled_process *process);
