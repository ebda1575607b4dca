/* How much of a process's memory is resident, and which code ran while that changed. */
#pragma once

#include "sampler/process.h"

/* What the kernel tells of the process's memory: a descriptor, or -1. */
int memory_open(pid_t pid);

/* A thread was sampled: the one that used the most CPU time in a round is noted with a change. */
void memory_ran(struct sampled_process *process, uint64_t cpu_ns, uint32_t thread, uint32_t stack);

/* Look at the end of a round; a change that is large enough is written down. */
void memory_look(struct sampled_process *process);
