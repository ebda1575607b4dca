/* The kernel's view: the system calls of chosen processes, recorded from outside them. Only root, or who has the right to use
   perf events on tracepoints, can. */
#pragma once

#include "kernel/watched.h"

struct kernel_view;

/* Where the kernel has its tracepoints of system calls: 0 or the error's number. */
int kernel_view_find(struct tracepoints *found);

/* NULL with errno set. `follows`: processes that a watched one starts are watched as well. `kinds`: which are recorded, a bit for
   each. `has_stacks`: calls come with the functions that led to them. */
struct kernel_view *kernel_view_begin(struct tracepoints tracepoints, bool follows, bool has_stacks, uint32_t kinds);

/* Watch a process, with the threads that it has. 0 or the error's number. */
int kernel_view_watch(struct kernel_view *view, pid_t pid, struct watched_process **process);

/* Watch the program that a child of the calling thread becomes. 0 or the error's number. */
int kernel_view_watch_child(struct kernel_view *view);

/* Look for what happened; after a last look there is nothing to wait for. It is taken by `kernel_view_next`, up to where something
   has to be done about `process`, or to the end, which is NOTHING. */
void kernel_view_look(struct kernel_view *view, bool is_last);
enum wanted kernel_view_next(struct kernel_view *view, struct watched_process **process);

/* The processes that are watched, from this one on. */
struct watched_process *kernel_view_processes(const struct kernel_view *view);

/* Give a new process its files. 0 or the error's number. */
int kernel_view_place(struct watched_process *process, const char *directory);

/* The process has ended, or is watched no longer: write all of it. Then forget it. */
void kernel_view_leave(struct kernel_view *view, struct watched_process *process);
void kernel_view_forget(struct kernel_view *view, struct watched_process *process);

void kernel_view_end(struct kernel_view *view);

/* What notes cost a system call that does little, and what of it lies between its own two times, in nanoseconds. 0 or the error's
   number. */
int kernel_view_cost(struct tracepoints tracepoints, bool has_stacks, uint64_t *call_ns, uint64_t *inside_ns);
