#define _GNU_SOURCE
#include "sampler/schedule.h"

#include <fcntl.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

int open_of_thread(pid_t process, uint32_t tid, const char *name)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/task/%u/%s", (int)process, tid, name);
    return open(path, O_RDONLY | O_CLOEXEC);
}

static int open_clock(uint32_t tid)
{
    struct perf_event_attr clock = {
        .type = PERF_TYPE_SOFTWARE,
        .size = sizeof clock,
        .config = PERF_COUNT_SW_TASK_CLOCK,
        .exclude_kernel = 1, /* other users than root may not request more; the clock counts anyway */
        .exclude_hv = 1,
    };
    return (int)syscall(SYS_perf_event_open, &clock, (pid_t)tid, -1, -1, PERF_FLAG_FD_CLOEXEC);
}

/* A process may have few descriptors, and the monitor needs some for its other work. */
enum { FILES_A_THREAD = 3, FILES_AT_MOST = 128 * FILES_A_THREAD };
static unsigned files_opened;

struct schedule_files schedule_open(pid_t process, uint32_t tid)
{
    if (files_opened + FILES_A_THREAD > FILES_AT_MOST)
        return (struct schedule_files){.schedule = -1, .state = -1, .clock = -1};
    struct schedule_files files = {
        .schedule = open_of_thread(process, tid, "schedstat"),
        .state = open_of_thread(process, tid, "stat"),
        .clock = -1,
    };
    files_opened += (files.schedule >= 0) + (files.state >= 0);
    schedule_begin_clock(&files, tid);
    return files;
}

static void close_one(int *opened)
{
    if (*opened < 0)
        return;
    close(*opened);
    *opened = -1;
    files_opened--;
}

void schedule_close(struct schedule_files files)
{
    close_one(&files.schedule);
    close_one(&files.state);
    close_one(&files.clock);
}

void schedule_begin_clock(struct schedule_files *files, uint32_t tid)
{
    if (files->clock >= 0 || files_opened == FILES_AT_MOST)
        return;
    files->clock = open_clock(tid);
    files->before_ns = 0;
    files_opened += files->clock >= 0;
}

void schedule_end_clock(struct schedule_files *files, uint64_t cpu_ns, uint64_t scheduled_ns)
{
    if (files->clock >= 0)
        files->ahead_ns = cpu_ns > scheduled_ns ? cpu_ns - scheduled_ns : 0;
    close_one(&files->clock);
}

uint64_t schedule_cpu(struct schedule_files *files, uint64_t scheduled_ns)
{
    uint64_t since_ns, known_ns = scheduled_ns + files->ahead_ns;
    if (files->clock < 0 || read(files->clock, &since_ns, sizeof since_ns) != (ssize_t)sizeof since_ns)
        return known_ns;
    if (files->before_ns + since_ns < known_ns)
        files->before_ns = known_ns - since_ns;
    return files->before_ns + since_ns;
}

/* The text of a file of the thread; false if the thread is gone. */
static bool read_text(int opened, pid_t process, uint32_t tid, const char *name, char *text, size_t bytes)
{
    int own = opened < 0 ? open_of_thread(process, tid, name) : opened;
    ssize_t got = own < 0 ? -1 : pread(own, text, bytes - 1, 0);
    if (opened < 0 && own >= 0)
        close(own);
    text[got > 0 ? got : 0] = 0;
    return got > 0;
}

bool schedule_read(struct schedule_files files, pid_t process, uint32_t tid, struct schedule *found)
{
    char text[96], *rest = text;
    if (!read_text(files.schedule, process, tid, "schedstat", text, sizeof text))
        return false;
    found->cpu_ns = strtoull(rest, &rest, 10);
    found->run_delay_ns = strtoull(rest, &rest, 10);
    found->slices = strtoull(rest, &rest, 10);
    return true;
}

/* The number in the field that is so many fields after this one; -1: there is none. */
static int field_after(const char *field, unsigned fields)
{
    while (field && fields-- > 0) {
        field = strchr(field, ' ');
        field += field != NULL;
    }
    return field ? atoi(field) : -1;
}

bool schedule_runs(struct schedule_files files, pid_t process, uint32_t tid, int *processor)
{
    enum { STATE_TO_PROCESSOR = 36 }; /* fields */
    char text[1024];
    if (!read_text(files.state, process, tid, "stat", text, sizeof text))
        return false;
    const char *name_end = strrchr(text, ')'); /* a name may have such a sign in it; what follows it has none */
    const char *state = name_end && name_end[1] == ' ' ? name_end + 2 : "";
    *processor = field_after(state, STATE_TO_PROCESSOR);
    return *state == 'R';
}
