#define _GNU_SOURCE
#include "kernel/kernel_view.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "kernel/system_calls.h"

enum {
    RING_BYTES = 16 << 20,
    SMALL_RING_BYTES = 1 << 20,
    RINGS_BYTES = 256 << 20, /* all together, if there are many processors */
    WRITES_EVERY_S = 1,
    TRIES_AT_MOST = 16, /* to find all threads of a process that starts others meanwhile */
};

struct kernel_view {
    struct rings rings;
    struct watched watched;
    uint64_t written_ns;
};

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* --- begin and end */

/* A power of two. */
static size_t bytes_of_ring(void)
{
    size_t bytes = RING_BYTES;
    for (long processors = sysconf(_SC_NPROCESSORS_CONF); bytes > SMALL_RING_BYTES && bytes * (size_t)processors > RINGS_BYTES;)
        bytes /= 2;
    return bytes;
}

struct kernel_view *kernel_view_begin(struct tracepoints tracepoints, bool follows, bool has_stacks, uint32_t kinds)
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
    view->written_ns = now_ns();
    view->watched.kinds = kinds;
    view->watched.has_stacks = has_stacks;
    return view;
}

void kernel_view_end(struct kernel_view *view)
{
    while (view->watched.processes) {
        watched_leave(&view->watched, view->watched.processes, now_ns());
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
    struct note found = {.time_ns = now_ns()};
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
        struct watched_thread *thread = failed ? NULL : watched_thread_begin(&view->watched, process, tid, UNSURE, now_ns());
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
    *process = watched_begin(&view->watched, (uint32_t)pid, 0, now_ns());
    char program[64];
    snprintf(program, sizeof program, "/proc/%d/exe", (int)pid);
    if (*process)
        watched_program_was_there(*process, program);
    int failed = *process ? watch_all_threads(view, *process) : ENOMEM;
    if (!failed && view->watched.has_stacks)
        code_map_read(&(*process)->code, pid);
    if (failed && *process) {
        watched_leave(&view->watched, *process, now_ns());
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
    write_now_and_then(view, now_ns());
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

struct watched_process *kernel_view_processes(const struct kernel_view *view)
{
    return view->watched.processes;
}

void kernel_view_leave(struct kernel_view *view, struct watched_process *process)
{
    watched_leave(&view->watched, process, now_ns());
}

/* One that could not be recorded may still have threads, and files. */
void kernel_view_forget(struct kernel_view *view, struct watched_process *process)
{
    watched_leave(&view->watched, process, now_ns());
    watched_forget(&view->watched, process);
}

/* --- where the kernel has its tracepoints */

static uint64_t number_in(const char *directory, const char *name)
{
    char path[128];
    unsigned long long number = 0;
    snprintf(path, sizeof path, "%s/events/raw_syscalls/%s/id", directory, name);
    FILE *file = fopen(path, "re");
    if (!file)
        return 0;
    if (fscanf(file, "%llu", &number) != 1)
        number = 0;
    fclose(file);
    return number;
}

static int find_tracepoints(struct tracepoints *found)
{
    static const char *const places[] = {"/sys/kernel/tracing", "/sys/kernel/debug/tracing"};
    for (unsigned place = 0; place < sizeof places / sizeof *places; place++) {
        found->enter = number_in(places[place], "sys_enter");
        found->exit = number_in(places[place], "sys_exit");
        if (found->enter && found->exit)
            return 0;
    }
    return ENOENT;
}

/* In a child, which has the file system for itself. */
static void find_where_mounted(int answer)
{
    struct tracepoints found = {0};
    if (unshare(CLONE_NEWNS) == 0 && mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
        mount("tracefs", "/sys/kernel/tracing", "tracefs", MS_RDONLY, NULL) == 0)
        find_tracepoints(&found);
    _exit(write(answer, &found, sizeof found) == (ssize_t)sizeof found ? 0 : 1);
}

/* Nobody else sees the mount, and it ends with the child. */
static int find_by_mounting(struct tracepoints *found)
{
    int ends[2], status;
    if (pipe2(ends, O_CLOEXEC))
        return errno;
    pid_t child = fork();
    if (child == 0)
        find_where_mounted(ends[1]);
    close(ends[1]);
    bool is_read = child > 0 && read(ends[0], found, sizeof *found) == (ssize_t)sizeof *found;
    close(ends[0]);
    if (child > 0)
        waitpid(child, &status, 0);
    return is_read && found->enter && found->exit ? 0 : ENOENT;
}

int kernel_view_find(struct tracepoints *found)
{
    return find_tracepoints(found) ? find_by_mounting(found) : 0;
}

/* --- what notes cost */

static uint64_t time_of_calls(void)
{
    enum { CALLS = 1000, ROUNDS = 5 };
    uint64_t least_ns = UINT64_MAX;
    for (int round = 0; round < ROUNDS; round++) {
        uint64_t begin_ns = now_ns();
        for (int call = 0; call < CALLS; call++)
            syscall(SYS_getppid);
        uint64_t took_ns = (now_ns() - begin_ns) / CALLS;
        least_ns = took_ns < least_ns ? took_ns : least_ns;
    }
    return least_ns;
}

/* The shortest of the calls that were noted. */
static uint64_t least_noted_ns(struct rings *rings)
{
    struct note note;
    uint64_t begun_ns = 0, least_ns = UINT64_MAX;
    rings_look(rings, true);
    while (rings_next(rings, &note)) {
        bool is_it = note.number == SYS_getppid;
        if (note.kind == NOTE_ENTER)
            begun_ns = is_it ? note.time_ns : 0;
        else if (note.kind == NOTE_EXIT && is_it && begun_ns && note.time_ns - begun_ns < least_ns)
            least_ns = note.time_ns - begun_ns;
    }
    return least_ns == UINT64_MAX ? 0 : least_ns;
}

int kernel_view_cost(struct tracepoints tracepoints, bool has_stacks, uint64_t *call_ns, uint64_t *inside_ns)
{
    struct rings rings;
    uint64_t plain_ns = time_of_calls();
    int failed = rings_begin(&rings, tracepoints, SMALL_RING_BYTES, false, has_stacks);
    if (failed)
        return failed;
    failed = rings_add(&rings, (pid_t)syscall(SYS_gettid), false);
    if (!failed) {
        uint64_t noted_ns = time_of_calls();
        *call_ns = noted_ns > plain_ns ? noted_ns - plain_ns : 0;
        uint64_t least_ns = least_noted_ns(&rings);
        *inside_ns = least_ns > plain_ns ? least_ns - plain_ns : 0;
        *inside_ns = *inside_ns < *call_ns ? *inside_ns : *call_ns;
    }
    rings_end(&rings);
    return failed;
}
