/* Keeps the clocks of a watched thread: the time of its last note, its CPU time up to then, and its wait for a processor.

   The notes say when a thread had a processor. The kernel also charges it for the work of each switch to it, before the switch is
   noted. What a switch costs is learned by comparing the kernel's own count with ours now and then. The next switches make up for
   the difference, so that our sum is the kernel's. */
#pragma once

#include "kernel/watched.h"

/* Account for the time up to a note of this kind; 0: watching ends. */
void thread_advance(struct watched *watched, struct watched_thread *thread, uint64_t time_ns, enum note_kind kind);

/* Read the kernel's counts for later notes to use, if the thread was switched to, and they were not read after this instant. */
void thread_ask_kernel(struct watched_thread *thread, uint64_t not_since_ns);

/* Read them after records were lost. False if the thread has ended. */
bool thread_ask_kernel_after_loss(struct watched_thread *thread);

/* The thread has ended, or is no longer watched: add what is still owed. */
void thread_pay_all(struct watched_thread *thread);
