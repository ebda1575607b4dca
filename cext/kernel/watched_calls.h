/* The system calls of watched threads: from the note of their beginning and that of their end to an event. */
#pragma once

#include "kernel/watched.h"

/* A call begins; one in progress has lost the note of its end, and is dropped. */
void call_enter(const struct watched *watched, struct watched_thread *thread, const struct note *note);

/* One has ended. */
void call_leave(const struct watched *watched, struct watched_thread *thread, const struct note *note);

/* What is in progress is no event, and counts as dropped. */
void call_drop(struct watched_thread *thread);

/* The thread has ended within it. */
void call_end_with_thread(struct watched_thread *thread);

/* The first note since the thread was found in a call: that counts from the beginning of watching. Where notes tell of an earlier
   time, they say themselves what it was in then. */
void call_resume_found(const struct watched *watched, struct watched_thread *thread, uint64_t time_ns, bool enters);

/* Descriptors may refer to something else since then, and no call says so: another program has lost those that close by themselves. */
void process_forget_descriptors(struct watched_process *process, uint64_t since_ns);
