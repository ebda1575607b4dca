#define _GNU_SOURCE
#include "core/monitor.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/call_filter.h"
#include "core/open_file.h"
#include "core/own_file.h"
#include "core/recorder.h"
#include "core/session.h"
#include "core/system_calls.h"

enum { STACK_BYTES = 64 * 1024, LAST_SIGNAL = 64 };
enum { LATER_MS = 20 }; /* a program that has ended by then is not sampled */
enum { IOPRIO_WHO_PROCESS = 1, IOPRIO_IDLE = 3 << 13 };

/* It lowers its priority itself: until it is another program, ours waits for it. */
static const char code[] =
    "import posix, sys; posix.setpriority(posix.PRIO_PROCESS, 0, 10); "
    "sys.path[:0] = sys.argv[2].split(':')[:1]; sys.path += sys.argv[2].split(':')[1:]; "
    "from interpose.monitor import main; main(sys.argv[1], *map(int, sys.argv[3:]))";

static char interpreter[PATH_BYTES], import_path[4 * PATH_BYTES], starter[PATH_BYTES];

void monitor_prepare(const char *with, const char *path)
{
    bool fits = with[0] == '/' && strlen(with) < sizeof interpreter && strlen(path) < sizeof import_path;
    strcpy(interpreter, fits ? with : "");
    strcpy(import_path, fits ? path : "");
    if (!own_file(starter, "interpose_starter"))
        *starter = 0;
}

/* --- whether one may be started */

/* Orphans below a subreaper become its children, of the ordinary type. */
static bool is_subreaper(void)
{
    int set = 0;
    return prctl(PR_GET_CHILD_SUBREAPER, &set) != 0 || set;
}

static bool may_start(void)
{
    return interpreter[0] && getpid() != 1 && geteuid() == getuid() && getegid() == getgid() && !is_subreaper() &&
           !calls_are_filtered();
}

/* 0 if nobody has the lock by which an experiment is watched, and it belongs to the user; EBUSY if somebody has. */
static int why_not_watched(const char *founder)
{
    struct stat status;
    int opened = open(founder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (opened < 0)
        return errno;
    int failed = fstat(opened, &status) ? errno : status.st_uid != geteuid() ? EPERM : 0;
    if (!failed && flock(opened, LOCK_EX | LOCK_NB))
        failed = errno == EWOULDBLOCK ? EBUSY : errno;
    close(opened);
    return failed;
}

/* --- the two processes; both run in our memory, while we wait, until the second is another program */

struct start {
    const char *founder;
    char *stack; /* of the second */
    char *variables[4];
    char process[16], wait_ms[16];
    bool is_later;
    int error;
    pid_t monitor;
};

static pid_t started;

static void forget_signals(void)
{
    struct sigaction plain = {.sa_handler = SIG_DFL};
    for (int number = 1; number <= LAST_SIGNAL; number++)
        sigaction(number, &plain, NULL);
}

/* Standard input, output and error are /dev/null; all other descriptors are closed. */
static bool forget_descriptors(void)
{
    if (syscall(SYS_close_range, 0u, ~0u, 0u))
        return false;
    return open("/dev/null", O_RDWR) == 0 && dup(0) == 1 && dup(0) == 2;
}

static void be_quiet(void)
{
    struct sched_param ordinary = {0};
    sched_setscheduler(0, SCHED_OTHER, &ordinary);
    syscall(SYS_ioprio_set, IOPRIO_WHO_PROCESS, 0, IOPRIO_IDLE);
}

/* Execute the starter, which locks the experiment and waits. If no wait is wanted, or the starter cannot be executed,
   execute the interpreter, which takes the lock itself. Returns the error's number. */
static int execute(struct start *start)
{
    char *const words[] = {
        starter, (char *)(uintptr_t)start->founder, start->process, start->wait_ms,
        interpreter, "-I", "-S", "-c", (char *)(uintptr_t)code, (char *)(uintptr_t)start->founder, import_path, "3", NULL,
    };
    char *without_lock[8] = {NULL};
    if (start->is_later && access(interpreter, X_OK) == 0)
        execve(starter, words, start->variables);
    memcpy(without_lock, words + 4, 7 * sizeof *words);
    execve(interpreter, without_lock, start->variables);
    return errno;
}

static int become_monitor(void *data)
{
    struct start *start = data;
    sigset_t none;
    start->monitor = getpid();
    sigemptyset(&none);
    forget_signals();
    if (setsid() < 0 || chdir("/") || !forget_descriptors())
        _exit(start->error = errno ? errno : ENOSYS);
    umask(077);
    be_quiet();
    sigprocmask(SIG_SETMASK, &none, NULL);
    _exit(start->error = execute(start));
}

static int leave_orphan(void *data)
{
    struct start *start = data;
    if (clone(become_monitor, start->stack + STACK_BYTES, CLONE_VM | CLONE_VFORK, start) < 0)
        start->error = errno;
    _exit(0);
}

/* All that the interpreter itself may need of the environment. */
static void choose_variables(char *variables[4])
{
    static const char *const needed[] = {"LD_LIBRARY_PATH=", "PYTHONHOME=", "LC_ALL="};
    extern char **environ;
    int count = 0;
    for (char **variable = environ; variable && *variable; variable++)
        for (int each = 0; each < 3 && count < 3; each++)
            if (strncmp(*variable, needed[each], strlen(needed[each])) == 0)
                variables[count++] = *variable;
    variables[count] = NULL;
}

static void reap(pid_t process)
{
    while (process > 0 && waitpid(process, NULL, __WCLONE) < 0 && errno == EINTR)
        ;
}

/* Every signal waits meanwhile: a handler of the program's must not run in a process that is not the program. */
static int start_blocked(struct start *start, char *stacks)
{
    sigset_t all, before;
    int state;
    sigfillset(&all);
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
    pthread_sigmask(SIG_BLOCK, &all, &before);
    pid_t process = clone(leave_orphan, stacks + STACK_BYTES, CLONE_VM | CLONE_VFORK, start);
    if (process < 0)
        start->error = errno;
    reap(process);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_setcancelstate(state, &state);
    return start->error;
}

static int start_within(const char *founder, int wait_ms)
{
    int failed = why_not_watched(founder);
    failed = failed ? failed : may_start() ? 0 : EPERM;
    if (failed)
        return failed;
    char *stacks = mmap(NULL, 2 * STACK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
    if (stacks == MAP_FAILED)
        return errno;
    struct start start = {.founder = founder, .stack = stacks + STACK_BYTES, .is_later = wait_ms > 0};
    snprintf(start.process, sizeof start.process, "%d", (int)getpid());
    snprintf(start.wait_ms, sizeof start.wait_ms, "%d", wait_ms);
    choose_variables(start.variables);
    failed = start_blocked(&start, stacks);
    munmap(stacks, 2 * STACK_BYTES);
    started = failed ? 0 : start.monitor;
    return failed;
}

int monitor_start(const char *founder)
{
    return start_within(founder, 0);
}

/* The process that starts the monitor writes its process id into the control page, where that of an earlier one may still
   be. Descendants find the experiment watched, and read the id there. */
void monitor_begin_sampling(void)
{
    bool is_started = start_within(session.founder, LATER_MS) == 0;
    if (is_started)
        __atomic_store_n(&recorder.control->monitor, (uint64_t)started, __ATOMIC_RELAXED);
    uint64_t monitor = is_started ? (uint64_t)started : __atomic_load_n(&recorder.control->monitor, __ATOMIC_RELAXED);
    if (monitor)
        prctl(PR_SET_PTRACER, monitor, 0, 0, 0);
}
