/* Which threads a sampled process has, as its interpreters list them or, where it has none, the kernel. */
#pragma once

#include "sampler/process.h"

/* Look which there are, if that may have changed; false if the process cannot be read. */
bool threads_list(struct sampled_process *process);

/* The thread's sample that waits for others like it is written. */
void thread_write_pending(struct sampled_process *process, struct sampled_thread *thread);

/* Write the samples that wait for others like them, and forget the threads. */
void threads_forget(struct sampled_process *process);
