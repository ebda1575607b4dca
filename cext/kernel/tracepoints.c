#define _GNU_SOURCE
#include "kernel/tracepoints.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

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

static int find_mounted(struct tracepoints *found)
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
        find_mounted(&found);
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

int tracepoints_find(struct tracepoints *found)
{
    return find_mounted(found) ? find_by_mounting(found) : 0;
}
