/* The clocks of a watched thread: the time of its notes, and its CPU time between them. */
#pragma once

#include "kernel/watched.h"

/* Time passes until a note that says since when it is in its present state; `was_away`: it had no processor, if nothing is known. */
void thread_advance(struct watched_thread *thread, uint64_t time_ns, bool was_away);

/* Notes were lost: take over what the kernel has counted, once that is the past. False if the thread has ended. */
bool thread_ask_kernel(struct watched_thread *thread);
