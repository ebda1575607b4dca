/* Keeps the clocks of a watched thread: the time of its last note, its CPU time up to then, and its wait for a processor.

   The notes say when a thread had a processor. The kernel charges it for more: for the work of each switch to it, before that is
   noted. What a switch costs is learned from the kernel's own count, which is read at each look and compared with ours. The
   differences are made good at the next switches, so that our sum is the kernel's. */
#pragma once

#include "kernel/watched.h"

/* Account for the time up to a note of this kind; 0: watching ends. */
void thread_advance(struct watched *watched, struct watched_thread *thread, uint64_t time_ns, enum note_kind kind);

/* Read what the kernel has counted, if there is anything new, unless it was read after this instant; notes from now on use it. */
void thread_ask_kernel(struct watched_thread *thread, uint64_t not_since_ns);

/* The same where records were lost. False if the thread has ended. */
bool thread_ask_kernel_after_loss(struct watched_thread *thread);

/* The thread has ended, or is no longer watched: count what the kernel had counted beyond ours. */
void thread_pay_all(struct watched_thread *thread);
