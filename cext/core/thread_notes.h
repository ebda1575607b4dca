/* What threads.c has noted in a thread's record, beside what core/threads.h declares for others. */
#pragma once

#include "core/threads.h"

/* Recording took so much of its time. */
void thread_charge_own(struct thread *thread, uint64_t wall_ns, uint64_t cpu_ns);

/* The same for other work of interpose, inside `depth` calls: it is taken out of the self time of the innermost. */
VISIBLE void thread_charge_apart(struct thread *thread, uint32_t depth, uint64_t wall_ns, uint64_t cpu_ns);

/* What the calling thread had waited for a processor before it began to record does not count. */
void thread_begin_run_delay(struct thread *thread);

/* Like thread_note_run_delay, for a thread that runs meanwhile. */
void thread_note_run_delay_of_other(struct thread *thread);

uint64_t thread_run_delay_ns(const struct thread *thread);
