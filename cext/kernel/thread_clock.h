/* Keeps the clocks of a watched thread: the time of its last note, and its CPU time up to then. */
#pragma once

#include "kernel/watched.h"

/* Account for the time up to a note. `was_away`: if the thread's state was unknown, it had no processor. */
void thread_advance(struct watched_thread *thread, uint64_t time_ns, bool was_away);

/* Records were lost: read the CPU time that the kernel counted; notes after this moment use it. False if the thread has ended. */
bool thread_ask_kernel(struct watched_thread *thread);
