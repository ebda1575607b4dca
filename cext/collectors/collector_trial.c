#define _GNU_SOURCE
#include "collectors/collector_trial.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "core/system_calls.h"
#include "interpose_collector.h"

enum { LOOKS = 5000, LOOK_NS = 200000 }; /* it has a second */
enum { HANGS_MS = 250 };                 /* of CPU time: no call may have more */
enum { RETURNED = 42 };                  /* the child's exit status if the collector has not ended it */

static volatile size_t bytes_read; /* or the compiler would not read them */

static void read_text(const char *text)
{
    bytes_read += text ? strnlen(text, INTERPOSE_NAME_BYTES - 1) : 0;
}

static void read_declaration(const struct interpose_collector *found)
{
    read_text(found->name);
    for (const char *const *program = found->programs; program && *program; program++)
        read_text(*program);
    const struct interpose_section *section = found->sections;
    for (unsigned count = 0; section && section->name && count <= INTERPOSE_SECTIONS; section++, count++) {
        read_text(section->name);
        read_text(section->prefix);
    }
}

static void call_once(const struct interpose_collector *found, struct interpose_area area)
{
    area.version = INTERPOSE_COLLECTOR_VERSION;
    area.area_bytes = sizeof area;
    area.thread = (uint32_t)getpid();
    found->collect(&area);
    read_text(area.module);
    read_text(area.section);
    read_text(area.transaction);
}

/* Called from Python code, and from none. */
static void run_trial(const char *path)
{
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    const struct interpose_collector *found = library ? dlsym(library, INTERPOSE_COLLECTOR_SYMBOL) : NULL;
    if (!found || strncmp(found->eye_catcher, INTERPOSE_COLLECTOR_EYE_CATCHER, INTERPOSE_EYE_CATCHER_BYTES) ||
        !found->collect || found->area_bytes > sizeof(struct interpose_area))
        return; /* which is reported when it is loaded */
    read_declaration(found);
    call_once(found, (struct interpose_area){.file = "trial.py", .function = "trial", .line = 1, .address = 1,
                                             .module = "trial", .base = 1, .size = 1, .wall_ns = 1, .cpu_ns = 1});
    call_once(found, (struct interpose_area){.address = (uintptr_t)found->collect, .wall_ns = 1, .cpu_ns = 1});
}

static void be_quiet(void)
{
    static const int deadly[] = {SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGILL, SIGTRAP, SIGSYS};
    struct rlimit none = {0, 0};
    setrlimit(RLIMIT_CORE, &none);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (size_t each = 0; each < sizeof deadly / sizeof *deadly; each++)
        signal(deadly[each], SIG_DFL);
    int nothing = open("/dev/null", O_RDWR);
    for (int descriptor = 0; descriptor < 3; descriptor++)
        dup2(nothing, descriptor);
    syscall(SYS_close_range, 3u, ~0u, 0u);
}

static int outcome_of(int status)
{
    if (WIFSIGNALED(status))
        return WTERMSIG(status);
    return WEXITSTATUS(status) == RETURNED ? TRIAL_WELL : TRIAL_LEFT;
}

/* One that waits may wait for another thread, which the child does not have: that tells nothing. */
static int outcome_of_killed(pid_t child)
{
    struct rusage used = {.ru_maxrss = 0};
    int status;
    kill(child, SIGKILL);
    while (wait4(child, &status, __WALL, &used) < 0 && errno == EINTR)
        continue;
    long milliseconds = used.ru_utime.tv_sec * 1000 + used.ru_utime.tv_usec / 1000;
    return milliseconds > HANGS_MS ? TRIAL_HANGS : TRIAL_WELL;
}

/* How the child ended; one that takes too long is killed. */
static int outcome(pid_t child)
{
    struct timespec pause = {0, LOOK_NS};
    int status = 0;
    for (unsigned looks = 0; looks < LOOKS; looks++) {
        pid_t ended = waitpid(child, &status, WNOHANG | __WALL);
        if (ended == child)
            return outcome_of(status);
        if (ended < 0 && errno != EINTR)
            return TRIAL_WELL;
        nanosleep(&pause, NULL);
    }
    return outcome_of_killed(child);
}

/* Not by fork(3), so that no fork handlers run; and its end sends no signal. */
int try_collector(const char *path)
{
    int saved = errno;
    pid_t child = (pid_t)syscall(SYS_clone, 0ul, NULL, NULL, NULL, 0ul);
    if (child == 0) {
        be_quiet();
        run_trial(path);
        syscall(SYS_exit_group, RETURNED);
    }
    int how = child > 0 ? outcome(child) : TRIAL_WELL;
    errno = saved;
    return how;
}
