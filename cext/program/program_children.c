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
#include "core/own_thread.h"
#include "core/passed_variables.h"
#include "core/preload.h"
#include "core/program_name.h"
#include "core/readable.h"
#include "core/recorder.h"
#include "core/session.h"
#include "core/spare_stack.h"
#include "native/native_wrappers.h"
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

struct forking {
    struct thread *thread;
    struct child child;
};

static void prepare_fork(void *data)
{
    struct forking *forking = data;
    forking->thread = recording();
    forking->child = (struct child){.start_ns = clock_ns(CLOCK_MONOTONIC), .how = CHILD_FORK, .stack = program_stack()};
    recorder_forks();
}

static struct forking forks(void)
{
    struct forking forking;
    int saved = errno;
    spare_call(prepare_fork, &forking);
    errno = saved;
    return forking;
}

static void add_fork(void *data)
{
    struct forking *forking = data;
    starts(&forking->child, NULL);
}

/* In the parent. */
static pid_t has_forked(struct forking *forking, pid_t child)
{
    int saved = errno;
    if (forking->thread) {
        forking->child.number = forking->thread->fork;
        forking->child.pid = child > 0 ? (uint32_t)child : 0;
        forking->child.error = child > 0 ? 0 : (uint32_t)saved;
        spare_call(add_fork, forking);
    }
    recorder_has_forked();
    errno = saved;
    return child;
}

static void begin_forked(void *nothing)
{
    (void)nothing;
    recorder_forked();
}

static pid_t program_fork(void)
{
    struct forking forking = forks();
    pid_t child = NATIVE(fork)();
    if (child)
        return has_forked(&forking, child);
    spare_call(begin_forked, NULL);
    return 0;
}

static void end_recording(void *status)
{
    recorder_end(*(int *)status & 0xff);
}

/* What a child does that is cloned to run a function. */
struct cloned {
    int (*does)(void *);
    void *about;
};

static int begin_cloned(void *data)
{
    struct cloned cloned = *(struct cloned *)data;
    spare_call(begin_forked, NULL);
    int status = cloned.does(cloned.about);
    spare_call(end_recording, &status);
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
    if ((flags & CLONE_VM) && !(flags & (CLONE_VFORK | CLONE_THREAD)))
        spare_is_shared();
    if ((flags & CLONE_VM) || !does || is_borrowed())
        return REAL(clone)(does, stack, flags, about, told_us, storage, told_it);
    struct forking forking = forks();
    struct cloned cloned = {does, about};
    return has_forked(&forking, REAL(clone)(begin_cloned, stack, flags, &cloned, told_us, storage, told_it));
}

/* --- the start of a program: what is passed on is worked out on a stack of our own */

/* What a start needs in memory that stays until the program runs. */
struct start_room {
    struct passed_variables passed;
    char path[PATH_BYTES];
};
_Static_assert(sizeof(struct start_room) <= SPARE_BYTES - SPARE_STACK_BYTES, "it leaves room for the stack");

struct start {
    const char *name;
    int within; /* the directory, or the file if the name is empty */
    bool is_searched, is_exec;
    char *const *words, *const *given;
    char *const *variables; /* what it is passed */
    const char *path;       /* NULL: unknown */
    struct child child, *record;
    struct start_room *room; /* NULL: there is no memory */
};

static const char *path_of_start(const struct start *start)
{
    char *path = start->room->path;
    if (start->is_searched)
        return program_find(start->name, path) ? path : NULL;
    if (*start->name == '/' || start->within == AT_FDCWD)
        return start->name;
    snprintf(path, PATH_BYTES, *start->name ? OWN_PROC "/fd/%d/%s" : OWN_PROC "/fd/%d", start->within, start->name);
    return path;
}

static bool is_readable(const struct start *start)
{
    return is_readable_text(start->name) && (!start->words || is_readable_list((const char *const *)start->words)) &&
           (!start->given || is_readable_list((const char *const *)start->given));
}

static void prepare_start(void *data)
{
    struct start *start = data;
    if (!is_readable(start))
        return;
    start->path = path_of_start(start);
    start->variables = pass_variables(start->given, start->path, start->words, &start->room->passed);
    if (start->is_exec && start->path)
        start->record = becomes(start->path);
}

static void begin_start(struct start *start)
{
    int saved = errno;
    start->variables = start->given;
    start->room = spare_take();
    if (start->room)
        spare_run(start->room, prepare_start, start);
    errno = saved;
}

/* --- exec */

/* It has failed, or it would not have returned. */
static int end_exec(struct start *start, int result)
{
    if (start->record)
        start->record->error = (uint32_t)errno;
    spare_release(start->room);
    return result;
}

static struct start start_of_path(const char *path, char *const *words, char *const *given)
{
    return (struct start){.name = path, .within = AT_FDCWD, .words = words, .given = given};
}

static int program_execve(const char *path, char *const *words, char *const *given)
{
    struct start start = start_of_path(path, words, given);
    start.is_exec = true;
    begin_start(&start);
    return end_exec(&start, REAL(execve)(path, words, start.variables));
}

static int program_execv(const char *path, char *const *words)
{
    return program_execve(path, words, environ);
}

static int program_execvpe(const char *name, char *const *words, char *const *given)
{
    struct start start = start_of_path(name, words, given);
    start.is_exec = start.is_searched = true;
    begin_start(&start);
    return end_exec(&start, REAL(execvpe)(name, words, start.variables));
}

static int program_execvp(const char *name, char *const *words)
{
    return program_execvpe(name, words, environ);
}

static int program_execveat(int within, const char *name, char *const *words, char *const *given, int flags)
{
    struct start start = {.name = name, .within = within, .is_exec = true, .words = words, .given = given};
    begin_start(&start);
    return end_exec(&start, REAL(execveat)(within, name, words, start.variables, flags));
}

static int program_fexecve(int number, char *const *words, char *const *given)
{
    struct start start = {.name = "", .within = number, .is_exec = true, .words = words, .given = given};
    begin_start(&start);
    return end_exec(&start, REAL(fexecve)(number, words, start.variables));
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
    return program_execve(path, words, environ);
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
    return program_execve(path, words, given);
}

/* --- spawn */

typedef int spawn_function(pid_t *, const char *, const posix_spawn_file_actions_t *, const posix_spawnattr_t *, char *const *,
                           char *const *);

static void add_start(void *data)
{
    struct start *start = data;
    if (is_readable_text(start->name))
        starts(&start->child, start->path ? start->path : start->name);
}

static void end_start(struct start *start)
{
    int saved = errno;
    if (start->room)
        spare_run(start->room, add_start, start);
    spare_release(start->room);
    errno = saved;
}

static int spawn(spawn_function *native, struct start *start, pid_t *wanted, const posix_spawn_file_actions_t *actions,
                 const posix_spawnattr_t *how)
{
    pid_t pid = 0, *place = wanted ? wanted : &pid;
    start->child = (struct child){.start_ns = clock_ns(CLOCK_MONOTONIC), .how = CHILD_SPAWN};
    begin_start(start);
    int failed = native(place, start->name, actions, how, start->words, start->variables);
    start->child.error = (uint32_t)failed;
    start->child.pid = failed ? 0 : (uint32_t)*place;
    end_start(start);
    return failed;
}

static int program_posix_spawn(pid_t *wanted, const char *path, const posix_spawn_file_actions_t *actions,
                               const posix_spawnattr_t *how, char *const *words, char *const *given)
{
    struct start start = start_of_path(path, words, given);
    return spawn(NATIVE(posix_spawn), &start, wanted, actions, how);
}

static int program_posix_spawnp(pid_t *wanted, const char *name, const posix_spawn_file_actions_t *actions,
                                const posix_spawnattr_t *how, char *const *words, char *const *given)
{
    struct start start = start_of_path(name, words, given);
    start.is_searched = true;
    return spawn(NATIVE(posix_spawnp), &start, wanted, actions, how);
}

/* --- shells, which get the process's own environment */

static char *const shell_words[] = {"sh", "-c", NULL};

static void prepare_shell(void *data)
{
    struct start *start = data;
    start->record = starts(&start->child, start->name);
    start->variables = pass_variables(start->given, start->name, start->words, &start->room->passed);
}

/* The environment that was there before; what the program puts in its place meanwhile stays. */
static struct start begin_shell(void)
{
    struct start start = start_of_path("/bin/sh", shell_words, environ);
    int saved = errno;
    start.child = (struct child){.start_ns = clock_ns(CLOCK_MONOTONIC), .how = CHILD_SHELL};
    start.variables = environ;
    start.room = spare_take();
    if (start.room)
        spare_run(start.room, prepare_shell, &start);
    environ = (char **)(size_t)start.variables;
    errno = saved;
    return start;
}

static void end_shell(struct start *start)
{
    if (environ == start->variables)
        environ = (char **)(size_t)start->given;
    spare_release(start->room);
}

static int program_system(const char *command)
{
    if (!command)
        return NATIVE(system)(command);
    struct start start = begin_shell();
    waits();
    int status = NATIVE(system)(command), saved = errno;
    if (start.record)
        child_ended(start.record, status, clock_ns(CLOCK_MONOTONIC));
    end_shell(&start);
    errno = saved;
    return status;
}

static FILE *program_popen(const char *command, const char *mode)
{
    struct start start = begin_shell();
    FILE *pipe = NATIVE(popen)(command, mode);
    end_shell(&start);
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
        spare_call(end_recording, &status);
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
#define EXCHANGE(name) {#name, (void *)program_##name, &reals[OF_##name], false, NULL},
    static const struct native_exchange own[] = {EXCHANGES(EXCHANGE)};
    for (unsigned each = 0; each < EXCHANGE_COUNT; each++)
        program_exchange(own[each]);
}
