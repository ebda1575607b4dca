/* The threads of a sampled process that its interpreters know, and the samples of each. */
#pragma once

#include "sampler/process.h"

/* Take a sample of every thread. False where the process cannot be read: it has ended, or is another program now, or is
   no longer recorded. */
bool threads_sample(struct sampled_process *process);

/* Write the samples that wait for others like them, and forget the threads. */
void threads_forget(struct sampled_process *process);
