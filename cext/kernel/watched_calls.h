/* Makes an event of each system call of a watched thread, from the note of its start and the note of its end. */
#pragma once

#include "kernel/watched.h"

/* A call starts. If another call is still in progress, the record of its end was lost, and it is dropped. */
void call_enter(const struct watched *watched, struct watched_thread *thread, const struct note *note);

/* A call ends. */
void call_leave(const struct watched *watched, struct watched_thread *thread, const struct note *note);

/* Drop the call in progress: it becomes no event, and counts as dropped. */
void call_drop(struct watched_thread *thread);

/* Is the call in progress an exec? */
bool call_is_exec(const struct watched_thread *thread);

/* The thread has ended in the call in progress. */
void call_end_with_thread(struct watched_thread *thread);

/* The first note of a thread that was found in a call. The call counts from the start of watching, unless this note is older or
   is the start of a call: then the notes themselves say which call the thread was in. */
void call_resume_found(const struct watched *watched, struct watched_thread *thread, uint64_t time_ns, bool enters);

/* Since `since_ns`, descriptors may refer to something else, though no call says so: an exec closes those with close-on-exec. */
void process_forget_descriptors(struct watched_process *process, uint64_t since_ns);
