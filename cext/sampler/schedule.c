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

int schedule_open(pid_t process, uint32_t tid)
{
    return open_of_thread(process, tid, "schedstat");
}

bool schedule_read(int opened, pid_t process, uint32_t tid, struct schedule *found)
{
    char text[96], *rest = text;
    int own = opened < 0 ? schedule_open(process, tid) : opened;
    ssize_t got = own < 0 ? -1 : pread(own, text, sizeof text - 1, 0);
    if (opened < 0 && own >= 0)
        close(own);
    if (got <= 0)
        return false;
    text[got] = 0;
    found->cpu_ns = strtoull(rest, &rest, 10);
    found->run_delay_ns = strtoull(rest, &rest, 10);
    found->slices = strtoull(rest, &rest, 10);
    return true;
}

bool schedule_runs(pid_t process, uint32_t tid)
{
    char text[128];
    int opened = open_of_thread(process, tid, "stat");
    ssize_t got = opened < 0 ? -1 : read(opened, text, sizeof text - 1);
    if (opened >= 0)
        close(opened);
    if (got <= 0)
        return false;
    text[got] = 0;
    const char *name_end = strrchr(text, ')'); /* a name may have such a sign in it; what follows it has none */
    return name_end && name_end[1] == ' ' && name_end[2] == 'R';
}
