#define _GNU_SOURCE
#include "kernel/kernel_view.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/clock.h"
#include "kernel/system_calls.h"

enum {
    RING_BYTES = 16 << 20,
    LEAST_RING_BYTES = 1 << 20,
    RINGS_BYTES = 256 << 20, /* all together, if there are many processors */
    WRITES_EVERY_S = 1,
    TRIES_AT_MOST = 16, /* to find all threads of a process that starts others meanwhile */
};

struct kernel_view {
    struct rings rings;
    struct watched watched;
    uint64_t written_ns;
};

/* --- begin and end */

/* A power of two. */
static size_t bytes_of_ring(void)
{
    size_t bytes = RING_BYTES;
    for (long processors = sysconf(_SC_NPROCESSORS_CONF); bytes > LEAST_RING_BYTES && bytes * (size_t)processors > RINGS_BYTES;)
        bytes /= 2;
    return bytes;
}

struct kernel_view *kernel_view_begin(struct tracepoints tracepoints, bool follows, bool has_stacks, uint32_t kinds,
                                      struct note_costs costs)
{
    struct kernel_view *view = calloc(1, sizeof *view);
    if (!view)
        return NULL;
    system_calls_prepare();
    int failed = rings_begin(&view->rings, tracepoints, bytes_of_ring(), follows, has_stacks);
    if (failed) {
        free(view);
        errno = failed;
        return NULL;
    }
    view->written_ns = clock_ns(CLOCK_MONOTONIC);
    view->watched.kinds = kinds;
    view->watched.costs = costs;
    view->watched.has_stacks = has_stacks;
    return view;
}

void kernel_view_end(struct kernel_view *view)
{
    while (view->watched.processes) {
        watched_leave(&view->watched, view->watched.processes, clock_ns(CLOCK_MONOTONIC));
        watched_forget(&view->watched, view->watched.processes);
    }
    numbers_clear(&view->watched.threads);
    free(view->watched.thread);
    rings_end(&view->rings);
    free(view);
}

/* --- who is watched */

/* The system call that a thread waits in; it may have left it meanwhile, and notes will tell. */
static void find_call(pid_t pid, struct watched_thread *thread)
{
    char path[64];
    struct note found = {.time_ns = clock_ns(CLOCK_MONOTONIC)};
    unsigned long long argument[ARGUMENTS];
    snprintf(path, sizeof path, "/proc/%d/task/%u/syscall", (int)pid, thread->tid);
    FILE *file = fopen(path, "re");
    if (!file)
        return;
    if (fscanf(file, "%" SCNd64 " %llx %llx", &found.number, &argument[0], &argument[1]) == 3 && found.number >= 0) {
        for (unsigned place = 0; place < ARGUMENTS; place++)
            found.argument[place] = argument[place];
        watched_thread_found(thread, &found);
    }
    fclose(file);
}

/* Threads that are not watched yet; how many were found, or less than 0 with errno set. */
static int watch_threads(struct kernel_view *view, struct watched_process *process, struct numbers *seen)
{
    char path[64];
    struct dirent *entry;
    int found = 0;
    snprintf(path, sizeof path, "/proc/%u/task", process->pid);
    DIR *list = opendir(path);
    if (!list)
        return -1;
    while ((entry = readdir(list))) {
        uint32_t tid = (uint32_t)strtoul(entry->d_name, NULL, 10);
        if (!tid || numbers_find(seen, tid))
            continue;
        numbers_keep(seen, tid, 1);
        int failed = rings_add(&view->rings, (pid_t)tid, false);
        if (failed && failed != ESRCH) {
            closedir(list);
            errno = failed;
            return -1;
        }
        struct watched_thread *thread = failed ? NULL : watched_thread_begin(&view->watched, process, tid, UNSURE, clock_ns(CLOCK_MONOTONIC));
        if (thread) {
            watched_thread_was_there(thread);
            find_call((pid_t)process->pid, thread);
            found++;
        }
    }
    closedir(list);
    return found;
}

/* Until a look finds no more: those found begin others as watched ones. */
static int watch_all_threads(struct kernel_view *view, struct watched_process *process)
{
    struct numbers seen = {0};
    int found = 1;
    for (int tries = 0; found > 0 && tries < TRIES_AT_MOST; tries++)
        found = watch_threads(view, process, &seen);
    int failed = found < 0 ? errno == ENOENT ? ESRCH : errno : 0;
    numbers_clear(&seen);
    return failed;
}

int kernel_view_watch(struct kernel_view *view, pid_t pid, struct watched_process **process)
{
    *process = watched_begin(&view->watched, (uint32_t)pid, 0, clock_ns(CLOCK_MONOTONIC));
    char program[64];
    snprintf(program, sizeof program, "/proc/%d/exe", (int)pid);
    if (*process)
        watched_program_was_there(*process, program);
    int failed = *process ? watch_all_threads(view, *process) : ENOMEM;
    if (!failed && view->watched.has_stacks)
        code_map_read(&(*process)->code, pid);
    if (failed && *process) {
        watched_leave(&view->watched, *process, clock_ns(CLOCK_MONOTONIC));
        watched_forget(&view->watched, *process);
    }
    return failed;
}

/* The child has the events of the thread that it is forked from, and they are enabled when it becomes another program. */
int kernel_view_watch_child(struct kernel_view *view)
{
    return rings_add(&view->rings, (pid_t)syscall(SYS_gettid), true);
}

int kernel_view_place(struct watched_process *process, const char *directory)
{
    int failed = kernel_files_begin(&process->files, directory);
    process->is_placed = !failed;
    return failed;
}

/* --- the way of notes */

static void write_now_and_then(struct kernel_view *view, uint64_t now)
{
    if (now < view->written_ns + WRITES_EVERY_S * 1000000000u)
        return;
    watched_write(&view->watched);
    view->written_ns = now;
}

void kernel_view_look(struct kernel_view *view, bool is_last)
{
    uint64_t now_ns = clock_ns(CLOCK_MONOTONIC);
    write_now_and_then(view, now_ns);
    watched_end_gone(&view->watched, view->rings.until_ns);
    watched_ask_kernel(&view->watched, now_ns);
    rings_look(&view->rings, is_last);
}

enum wanted kernel_view_next(struct kernel_view *view, struct watched_process **process)
{
    struct note note;
    enum wanted wanted = NOTHING;
    while (!wanted && rings_next(&view->rings, &note))
        wanted = watched_take(&view->watched, &note, process);
    return wanted;
}

void kernel_view_leave(struct kernel_view *view, struct watched_process *process)
{
    watched_leave(&view->watched, process, clock_ns(CLOCK_MONOTONIC));
}

/* One that could not be recorded may still have threads, and files. */
void kernel_view_forget(struct kernel_view *view, struct watched_process *process)
{
    watched_leave(&view->watched, process, clock_ns(CLOCK_MONOTONIC));
    watched_forget(&view->watched, process);
}
