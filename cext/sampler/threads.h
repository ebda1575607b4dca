/* The samples of the threads of a process. */
#pragma once

#include "sampler/process.h"

/* Take a sample of every thread. False if the process cannot be read: it has ended, or is another program now, or is
   no longer recorded. */
bool threads_sample(struct sampled_process *process);

/* Settle which of its threads had a processor at their last sample, where that was in doubt (on_processor.h). */
void threads_settle(struct sampled_process *process);
