#define _GNU_SOURCE
#include "sampler/counters.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "sampler/schedule.h"

/* A process may have few descriptors, and the monitor needs some for its other work. */
enum { FILES_AT_MOST = 256, TEXT_BYTES = 4096 };
static unsigned files_opened;

static int kept(int file)
{
    if (file >= 0)
        files_opened++;
    return file;
}

static void give_back(int *file)
{
    if (*file >= 0) {
        close(*file);
        files_opened--;
    }
    *file = -1;
}

/* --- files of the thread in /proc */

static bool read_text(int file, char text[TEXT_BYTES])
{
    ssize_t length = file < 0 ? -1 : pread(file, text, TEXT_BYTES - 1, 0);
    text[length > 0 ? length : 0] = 0;
    return length > 0;
}

/* The number of a field of `stat`, as proc(5) numbers them from 1; behind the name, which may have any signs in it. */
static uint64_t field_of_stat(const char *text, unsigned number)
{
    const char *place = strrchr(text, ')');
    for (unsigned field = 2; place && field < number; field++)
        place = strchr(place + 1, ' ');
    return place ? strtoull(place, NULL, 10) : 0;
}

static bool read_faults(int file, uint64_t parts, uint64_t *count)
{
    enum { MINOR = 10, MAJOR = 12 };
    char text[TEXT_BYTES];
    bool is_read = read_text(file, text);
    *count = (parts & MINOR_FAULTS ? field_of_stat(text, MINOR) : 0) + (parts & MAJOR_FAULTS ? field_of_stat(text, MAJOR) : 0);
    return is_read;
}

static uint64_t line_of_status(const char *text, const char *name)
{
    const char *place = strstr(text, name);
    return place ? strtoull(place + strlen(name), NULL, 10) : 0;
}

static bool read_switches(int file, uint64_t parts, uint64_t *count)
{
    char text[TEXT_BYTES];
    bool is_read = read_text(file, text);
    *count = (parts & VOLUNTARY_SWITCHES ? line_of_status(text, "\nvoluntary_ctxt_switches:") : 0) +
             (parts & INVOLUNTARY_SWITCHES ? line_of_status(text, "\nnonvoluntary_ctxt_switches:") : 0);
    return is_read;
}

/* --- perf events */

/* Pinned: the event counts all the time or not at all, so that no count has to be estimated. */
static int open_event(struct counter counter, pid_t tid, bool in_user_mode_only)
{
    struct perf_event_attr event = {
        .type = counter.source == COUNTER_HARDWARE ? PERF_TYPE_HARDWARE : PERF_TYPE_SOFTWARE,
        .size = sizeof event,
        .config = counter.config,
        .pinned = 1,
        .exclude_kernel = in_user_mode_only,
        .exclude_hv = 1,
    };
    return kept((int)syscall(SYS_perf_event_open, &event, tid, -1, -1, PERF_FLAG_FD_CLOEXEC));
}

/* What is the kernel's own, it counts for nobody in user mode. */
static int open_permitted(struct counter counter, pid_t tid, bool *in_user_mode_only)
{
    int event = open_event(counter, tid, false);
    *in_user_mode_only = event < 0 && (errno == EACCES || errno == EPERM) && counter.source == COUNTER_HARDWARE;
    return *in_user_mode_only ? open_event(counter, tid, true) : event;
}

/* There is nothing to read where the processor had no counter free for it. */
static bool read_event(int event, uint64_t *count)
{
    return event >= 0 && read(event, count, sizeof *count) == (ssize_t)sizeof *count;
}

/* --- counters */

static bool read_counter(struct thread_counters *thread, struct counter counter, unsigned place, uint64_t *count)
{
    switch (counter.source) {
    case COUNTER_FAULTS:
        return read_faults(thread->faults, counter.config, count);
    case COUNTER_SWITCHES:
        return read_switches(thread->switches, counter.config, count);
    default:
        return read_event(thread->events[place], count);
    }
}

static int open_counter(struct thread_counters *thread, struct counter counter, unsigned place, pid_t process, uint32_t tid)
{
    bool is_fault = counter.source == COUNTER_FAULTS, is_switch = counter.source == COUNTER_SWITCHES;
    int *file = is_fault ? &thread->faults : is_switch ? &thread->switches : &thread->events[place];
    if (*file >= 0)
        return 0;
    if (files_opened >= FILES_AT_MOST)
        return EMFILE;
    *file = is_fault || is_switch ? kept(open_of_thread(process, tid, is_fault ? "stat" : "status"))
                                  : open_permitted(counter, (pid_t)tid, &thread->in_user_mode_only[place]);
    return *file >= 0 ? 0 : (is_fault || is_switch) && errno == ENOENT ? ESRCH : errno;
}

static int begin_counter(struct thread_counters *thread, struct counter counter, unsigned place, pid_t process, uint32_t tid)
{
    int error = tid ? open_counter(thread, counter, place, process, tid) : ESRCH; /* to the kernel, 0 is the calling thread */
    if (error || read_counter(thread, counter, place, &thread->last[place]))
        return error;
    return thread->events[place] < 0 ? ESRCH : EBUSY;
}

void counters_open(struct thread_counters *thread, const struct counters *counters, pid_t process, uint32_t tid, uint64_t pauses)
{
    memset(thread, 0, sizeof *thread);
    thread->faults = thread->switches = -1;
    thread->pauses = pauses;
    for (unsigned place = 0; place < COUNTERS_AT_MOST; place++)
        thread->events[place] = -1;
    for (unsigned place = 0; place < counters->count; place++)
        thread->errors[place] = begin_counter(thread, counters->chosen[place], place, process, tid);
}

void counters_close(struct thread_counters *thread)
{
    give_back(&thread->faults);
    give_back(&thread->switches);
    for (unsigned place = 0; place < COUNTERS_AT_MOST; place++)
        give_back(&thread->events[place]);
}

void counters_add(struct thread_counters *thread, const struct counters *counters, uint64_t pauses,
                  uint64_t counts[COUNTERS_AT_MOST])
{
    bool is_counted = thread->pauses == pauses;
    thread->pauses = pauses;
    for (unsigned place = 0; place < counters->count; place++) {
        uint64_t now;
        if (thread->errors[place])
            continue;
        if (read_counter(thread, counters->chosen[place], place, &now)) {
            counts[place] += is_counted && now > thread->last[place] ? now - thread->last[place] : 0;
            thread->last[place] = now;
        } else if (thread->events[place] >= 0) {
            thread->errors[place] = EBUSY; /* the processor has no counter free for it any more */
        }
    }
}

int counters_try(struct counter counter, bool *in_user_mode_only)
{
    struct counters only = {1, {counter}};
    struct thread_counters own;
    counters_open(&own, &only, getpid(), (uint32_t)syscall(SYS_gettid), 0);
    *in_user_mode_only = own.in_user_mode_only[0];
    counters_close(&own);
    return own.errors[0];
}
