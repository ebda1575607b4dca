#define _GNU_SOURCE
#include "sampler/schedule.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int open_of_thread(pid_t process, uint32_t tid, const char *name)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/task/%u/%s", (int)process, tid, name);
    return open(path, O_RDONLY | O_CLOEXEC);
}

struct schedule_files schedule_open(pid_t process, uint32_t tid)
{
    return (struct schedule_files){open_of_thread(process, tid, "schedstat"), open_of_thread(process, tid, "stat")};
}

void schedule_close(struct schedule_files files)
{
    if (files.schedule >= 0)
        close(files.schedule);
    if (files.state >= 0)
        close(files.state);
}

/* The text of a file of the thread; false where there is none any more. */
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

bool schedule_runs(struct schedule_files files, pid_t process, uint32_t tid)
{
    char text[128];
    if (!read_text(files.state, process, tid, "stat", text, sizeof text))
        return false;
    const char *name_end = strrchr(text, ')'); /* a name may have such a sign in it; what follows it has none */
    return name_end && name_end[1] == ' ' && name_end[2] == 'R';
}
