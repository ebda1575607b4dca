/* The garbage collector of the interpreter, which runs in the thread that made one object too many. */
#pragma once

#include "sampler/process.h"

/* The stack of a thread that runs: `stack`, or the collector below it if the thread collects garbage now. */
uint32_t collector_below(struct sampled_process *process, const struct sampled_thread *thread, uint32_t stack);
