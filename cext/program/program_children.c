/* How the program starts others, waits for them, becomes one, and ends: functions in the place of the C library's, exchanged as
   native calls are (native/native_host.h). Each makes the native call, too, where there is one. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/children.h"
#include "core/fork.h"
#include "core/interning.h"
#include "core/preload.h"
#include "core/program_name.h"
#include "core/recorder.h"
#include "core/session.h"
#include "native/native_wrappers.h"
#include "program/passed_variables.h"
#include "program/program_host.h"

/* The program's own functions, by their names. */
#define EXCHANGES(X) \
    X(fork) X(execve) X(execv) X(execvp) X(execvpe) X(execl) X(execlp) X(execle) X(fexecve) X(execveat) X(clone) X(posix_spawn) X(posix_spawnp) \
    X(system) X(popen) X(wait) X(waitpid) X(wait3) X(wait4) X(waitid) X(_exit) X(_Exit) X(prctl)
#define NUMBER_OF_EXCHANGE(name) OF_##name,
enum { EXCHANGES(NUMBER_OF_EXCHANGE) EXCHANGE_COUNT };

static void *reals[EXCHANGE_COUNT];
#define REAL(name) ((__typeof__(&name))reals[OF_##name])
#define NATIVE(name) ((__typeof__(&name))native_rows[NATIVE_##name].wrapper)

/* A child of vfork(2), in its parent's memory. */
static bool is_borrowed(void)
{
    return session_is_ours() && getpid() != session.process;
}

/* --- the records of children */

static void name_program(struct child *child, const char *path)
{
    enum reason reason = program_reason(path);
    const char *why = preload_follows(reason) ? NULL : reason_words(reason);
    child->command = program_intern(path);
    child->why = why ? string_intern(why, strlen(why)) : 0;
    child->stack = program_stack();
}

static struct child *starts(struct child *child, const char *path)
{
    int saved = errno;
    struct thread *thread = recording();
    if (thread && path)
        name_program(child, path);
    struct child *record = thread ? recorder_starts(child) : NULL;
    errno = saved;
    return record;
}

/* It becomes another program, or its child does so. */
static struct child *becomes(const char *path)
{
    struct child child = {.start_ns = clock_ns(CLOCK_MONOTONIC), .how = CHILD_EXEC};
    if (is_borrowed())
        child.how = CHILD_SPAWN;
    child.pid = (uint32_t)getpid();
    return starts(&child, path);
}

static int has_failed(struct child *child, int result)
{
    if (child)
        child->error = (uint32_t)errno;
    return result;
}

static void ended(pid_t child, int status)
{
    int saved = errno;
    if (child > 0 && !is_borrowed() && (WIFEXITED(status) || WIFSIGNALED(status)))
        children_ended((uint32_t)child, status, clock_ns(CLOCK_MONOTONIC));
    errno = saved;
}

static void waits(void)
{
    if (recording() && !is_borrowed())
        children_waited_for();
}

/* --- fork */

static struct child forks(void)
{
    struct child record = {.start_ns = clock_ns(CLOCK_MONOTONIC), .how = CHILD_FORK, .stack = program_stack()};
    recorder_forks();
    return record;
}

/* In the parent. */
static pid_t has_forked(struct child *record, struct thread *thread, pid_t child)
{
    int saved = errno;
    if (thread) {
        record->number = thread->fork;
        record->pid = child > 0 ? (uint32_t)child : 0;
        record->error = child > 0 ? 0 : (uint32_t)saved;
        starts(record, NULL);
    }
    recorder_has_forked();
    errno = saved;
    return child;
}

static pid_t program_fork(void)
{
    struct thread *thread = recording();
    struct child record = forks();
    pid_t child = NATIVE(fork)();
    if (child)
        return has_forked(&record, thread, child);
    recorder_forked();
    return 0;
}

/* What a child does that is cloned to run a function. */
struct cloned {
    int (*does)(void *);
    void *about;
};

static int begin_cloned(void *data)
{
    struct cloned cloned = *(struct cloned *)data;
    recorder_forked();
    int status = cloned.does(cloned.about);
    recorder_end(status & 0xff);
    return status;
}

/* A thread, or a child in our memory, passes through; a child in a copy of it is a forked one. */
static int program_clone(int (*does)(void *), void *stack, int flags, void *about, ...)
{
    va_list more;
    va_start(more, about);
    pid_t *told_us = va_arg(more, pid_t *);
    void *storage = va_arg(more, void *);
    pid_t *told_it = va_arg(more, pid_t *);
    va_end(more);
    if ((flags & CLONE_VM) || !does || is_borrowed())
        return REAL(clone)(does, stack, flags, about, told_us, storage, told_it);
    struct thread *thread = recording();
    struct child record = forks();
    struct cloned cloned = {does, about};
    return has_forked(&record, thread, REAL(clone)(begin_cloned, stack, flags, &cloned, told_us, storage, told_it));
}

/* --- exec */

#define PASSED(given) \
    struct variables_room room = room_for_variables(given); \
    char *passed[room.count], texts[room.bytes]

static int become(const char *path, char *const *words, char *const *given)
{
    PASSED(given);
    char *const *variables = pass_variables(given, path, words, passed, texts);
    struct child *child = becomes(path);
    return has_failed(child, REAL(execve)(path, words, variables));
}

static int program_execve(const char *path, char *const *words, char *const *given)
{
    return become(path, words, given);
}

static int program_execv(const char *path, char *const *words)
{
    return become(path, words, environ);
}

static int program_execvpe(const char *name, char *const *words, char *const *given)
{
    char found[PATH_BYTES];
    PASSED(given);
    const char *path = program_find(name, found) ? found : NULL;
    char *const *variables = pass_variables(given, path, words, passed, texts);
    struct child *child = path ? becomes(path) : NULL;
    return has_failed(child, REAL(execvpe)(name, words, variables));
}

static int program_execvp(const char *name, char *const *words)
{
    return program_execvpe(name, words, environ);
}

static int program_execveat(int within, const char *name, char *const *words, char *const *given, int flags)
{
    char path[PATH_BYTES];
    PASSED(given);
    if (*name == '/' || within == AT_FDCWD)
        snprintf(path, sizeof path, "%s", name);
    else
        snprintf(path, sizeof path, *name ? "/proc/self/fd/%d/%s" : "/proc/self/fd/%d", within, name);
    char *const *variables = pass_variables(given, path, words, passed, texts);
    struct child *child = becomes(path);
    return has_failed(child, REAL(execveat)(within, name, words, variables, flags));
}

static int program_fexecve(int number, char *const *words, char *const *given)
{
    char path[64];
    PASSED(given);
    snprintf(path, sizeof path, "/proc/self/fd/%d", number);
    char *const *variables = pass_variables(given, path, words, passed, texts);
    struct child *child = becomes(path);
    return has_failed(child, REAL(fexecve)(number, words, variables));
}

/* The words of a function that has them as arguments, ended by NULL. */
static size_t count_words(va_list more)
{
    size_t count = 1;
    while (va_arg(more, char *))
        count++;
    return count;
}

#define WORDS(first) \
    va_list more, again; \
    va_start(more, first); \
    va_copy(again, more); \
    size_t count = (first) ? count_words(again) : 0; \
    char *words[count + 1]; \
    words[0] = (char *)(size_t)(first); \
    for (size_t place = 1; place <= count; place++) \
        words[place] = va_arg(more, char *)
#define WORDS_END() \
    va_end(again); \
    va_end(more)

static int program_execl(const char *path, const char *first, ...)
{
    WORDS(first);
    WORDS_END();
    return become(path, words, environ);
}

static int program_execlp(const char *name, const char *first, ...)
{
    WORDS(first);
    WORDS_END();
    return program_execvpe(name, words, environ);
}

static int program_execle(const char *path, const char *first, ...)
{
    WORDS(first);
    char *const *given = va_arg(more, char *const *);
    WORDS_END();
    return become(path, words, given);
}

/* --- spawn */

typedef int spawn_function(pid_t *, const char *, const posix_spawn_file_actions_t *, const posix_spawnattr_t *, char *const *,
                           char *const *);

static int spawn(spawn_function *native, const char *path, pid_t *wanted, const char *name,
                 const posix_spawn_file_actions_t *actions, const posix_spawnattr_t *how, char *const *words,
                 char *const *given)
{
    pid_t pid = 0, *place = wanted ? wanted : &pid;
    struct child child = {.start_ns = clock_ns(CLOCK_MONOTONIC), .how = CHILD_SPAWN};
    PASSED(given);
    int failed = native(place, name, actions, how, words, pass_variables(given, path, words, passed, texts));
    child.error = (uint32_t)failed;
    child.pid = failed ? 0 : (uint32_t)*place;
    starts(&child, path ? path : name);
    return failed;
}

static int program_posix_spawn(pid_t *wanted, const char *path, const posix_spawn_file_actions_t *actions,
                               const posix_spawnattr_t *how, char *const *words, char *const *given)
{
    return spawn(NATIVE(posix_spawn), path, wanted, path, actions, how, words, given);
}

static int program_posix_spawnp(pid_t *wanted, const char *name, const posix_spawn_file_actions_t *actions,
                                const posix_spawnattr_t *how, char *const *words, char *const *given)
{
    char found[PATH_BYTES];
    return spawn(NATIVE(posix_spawnp), program_find(name, found) ? found : NULL, wanted, name, actions, how, words, given);
}

/* --- shells, which get the process's own environment */

static const char shell[] = "/bin/sh";
static char *const shell_words[] = {"sh", "-c", NULL};

static int program_system(const char *command)
{
    if (!command)
        return NATIVE(system)(command);
    struct child child = {.start_ns = clock_ns(CLOCK_MONOTONIC), .how = CHILD_SHELL}, *record = starts(&child, shell);
    char **before = environ;
    PASSED(before);
    char **ours = environ = (char **)(size_t)pass_variables(before, shell, shell_words, passed, texts);
    waits();
    int status = NATIVE(system)(command), saved = errno;
    if (environ == ours)
        environ = before;
    if (record)
        child_ended(record, status, clock_ns(CLOCK_MONOTONIC));
    errno = saved;
    return status;
}

static FILE *program_popen(const char *command, const char *mode)
{
    struct child child = {.start_ns = clock_ns(CLOCK_MONOTONIC), .how = CHILD_SHELL};
    char **before = environ;
    PASSED(before);
    starts(&child, shell);
    char **ours = environ = (char **)(size_t)pass_variables(before, shell, shell_words, passed, texts);
    FILE *pipe = NATIVE(popen)(command, mode);
    if (environ == ours)
        environ = before;
    return pipe;
}

/* --- waiting */

static pid_t program_waitpid(pid_t which, int *wanted, int options)
{
    int status = 0, *place = wanted ? wanted : &status;
    waits();
    pid_t child = NATIVE(waitpid)(which, place, options);
    ended(child, child > 0 ? *place : 0);
    return child;
}

static pid_t program_wait(int *wanted)
{
    int status = 0, *place = wanted ? wanted : &status;
    waits();
    pid_t child = NATIVE(wait)(place);
    ended(child, child > 0 ? *place : 0);
    return child;
}

static pid_t program_wait4(pid_t which, int *wanted, int options, struct rusage *used)
{
    int status = 0, *place = wanted ? wanted : &status;
    waits();
    pid_t child = NATIVE(wait4)(which, place, options, used);
    ended(child, child > 0 ? *place : 0);
    return child;
}

static pid_t program_wait3(int *wanted, int options, struct rusage *used)
{
    int status = 0, *place = wanted ? wanted : &status;
    waits();
    pid_t child = NATIVE(wait3)(place, options, used);
    ended(child, child > 0 ? *place : 0);
    return child;
}

static int program_waitid(idtype_t type, id_t id, siginfo_t *info, int options)
{
    waits();
    int failed = NATIVE(waitid)(type, id, info, options);
    bool has_ended = !failed && info && info->si_pid > 0 && !(options & WNOWAIT);
    if (has_ended && info->si_code == CLD_EXITED)
        ended(info->si_pid, W_EXITCODE(info->si_status & 0xff, 0));
    else if (has_ended && (info->si_code == CLD_KILLED || info->si_code == CLD_DUMPED))
        ended(info->si_pid, info->si_status & 0x7f);
    return failed;
}

/* --- the end */

static void ends(int status)
{
    if (!is_borrowed())
        recorder_end(status & 0xff);
}

static void program__exit(int status)
{
    ends(status);
    REAL(_exit)(status);
}

static void program__Exit(int status)
{
    ends(status);
    REAL(_Exit)(status);
}

/* Under a filter of system calls those that recording needs may be answered by a signal that kills. */
static int program_prctl(int option, unsigned long second, unsigned long third, unsigned long fourth, unsigned long fifth)
{
    if ((option == PR_SET_SECCOMP || option == PR_SET_NO_NEW_PRIVS) && !is_borrowed())
        recorder_detach();
    return REAL(prctl)(option, second, third, fourth, fifth);
}

void program_exchange_children(void)
{
#define EXCHANGE(name) program_exchange((struct native_exchange){#name, (void *)program_##name, &reals[OF_##name], false});
    EXCHANGES(EXCHANGE)
}
