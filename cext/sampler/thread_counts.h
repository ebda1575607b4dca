/* What was counted of the threads of a process (counters.h), from sample to sample. */
#pragma once

#include "sampler/process.h"

/* The thread was found: count from now on. */
void thread_counts_begin(struct sampled_process *process, struct sampled_thread *thread);

/* Add what was counted since the last time. */
void thread_counts_add(const struct sampled_process *process, struct sampled_thread *thread, uint64_t counts[COUNTERS_AT_MOST]);

/* Write down the sample, and what was counted up to it. */
void thread_counts_write(struct sampled_process *process, const struct sampled_thread *thread, const struct taken *taken);

/* The thread is no longer there: write down what was counted after its last sample. */
void thread_counts_end(struct sampled_process *process, struct sampled_thread *thread);
