/* The kernel's view: records the system calls of processes from outside, with perf events on the kernel's tracepoints. It needs
   root, or the right to use such events. */
#pragma once

#include "kernel/watched.h"

struct kernel_view;

/* Returns NULL with errno set if it fails. `follows`: also watch child processes. `has_stacks`: record the functions that led to
   each call. `kinds`: the kinds to record, a bit for each. `costs`: of notes and switches. */
struct kernel_view *kernel_view_begin(struct tracepoints tracepoints, bool follows, bool has_stacks, uint32_t kinds,
                                      struct note_costs costs);

/* Watch a process with all its threads. Returns 0 or an errno. */
int kernel_view_watch(struct kernel_view *view, pid_t pid, struct watched_process **process);

/* Watch the next child of the calling thread, from its exec on. Returns 0 or an errno. */
int kernel_view_watch_child(struct kernel_view *view);

/* Look for new perf records; the last look takes all. Then call `kernel_view_next` until it returns NOTHING: it processes records
   until the caller has to do something about `process`, and returns what. */
void kernel_view_look(struct kernel_view *view, bool is_last);
enum wanted kernel_view_next(struct kernel_view *view, struct watched_process **process);

/* Create the files of a new process. Returns 0 or an errno. */
int kernel_view_place(struct watched_process *process, const char *directory);

/* The process has ended, or is no longer watched. `leave` writes what is left of it; call `forget` after that. */
void kernel_view_leave(struct kernel_view *view, struct watched_process *process);
void kernel_view_forget(struct kernel_view *view, struct watched_process *process);

void kernel_view_end(struct kernel_view *view);
