#define _GNU_SOURCE
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "hooks/child_waits.h"

#include <dlfcn.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/children.h"
#include "core/import_table.h"

typedef pid_t wait_function(pid_t, int *, int, struct rusage *);

static wait_function *real_wait;
static int begun;

/* --- in their places */

static pid_t wait_and_note(pid_t which, int *status, int options, struct rusage *used)
{
    pid_t child = real_wait(which, status, options, used);
    if (child > 0)
        children_reaped((uint32_t)child, used);
    return child;
}

static pid_t wait_for_pid(pid_t which, int *status, int options)
{
    struct rusage used;
    return wait_and_note(which, status, options, &used);
}

static pid_t wait_for_any(int *status)
{
    return wait_for_pid(-1, status, 0);
}

static pid_t wait_of_four(pid_t which, int *status, int options, struct rusage *wanted)
{
    struct rusage used;
    return wait_and_note(which, status, options, wanted ? wanted : &used);
}

static pid_t wait_of_three(int *status, int options, struct rusage *wanted)
{
    return wait_of_four(-1, status, options, wanted);
}

/* The C library's has no place for what the child used; the kernel's has. */
static int wait_for_id(idtype_t type, id_t id, siginfo_t *info, int options)
{
    struct rusage used;
    long failed = syscall(SYS_waitid, type, id, info, options, &used);
    if (!failed && info && info->si_pid > 0)
        children_reaped((uint32_t)info->si_pid, &used);
    return (int)failed;
}

/* --- exchanging */

static struct {
    struct import import;
    void *ours;
} waits[] = {
    {{.name = "waitpid"}, (void *)wait_for_pid}, {{.name = "wait"}, (void *)wait_for_any},
    {{.name = "wait3"}, (void *)wait_of_three},  {{.name = "wait4"}, (void *)wait_of_four},
    {{.name = "waitid"}, (void *)wait_for_id},
};
enum { WAITS = sizeof waits / sizeof *waits };

/* If somebody has preloaded a function of that name, it is called as before. */
static void exchange(unsigned number)
{
    struct import *import = &waits[number].import;
    bool taken = (!import->real || function_is_of_the_c_library(import->real)) && import_put(import, waits[number].ours);
    if (!taken)
        import->count = 0;
}

static void exchange_all(void)
{
    struct import *wanted[WAITS + 1] = {NULL};
    bool is_wanted[WAITS] = {false};
    for (unsigned number = 0, count = 0; number < WAITS; number++) {
        struct import *import = &waits[number].import;
        /* else ours could not be taken out, and is called still */
        is_wanted[number] = !import->count && function_is_of_the_c_library(dlsym(RTLD_DEFAULT, import->name));
        if (is_wanted[number])
            wanted[count++] = import;
    }
    if (imports_find(wanted, (const void *)PyEval_RestoreThread))
        return;
    for (unsigned number = 0; number < WAITS; number++)
        if (is_wanted[number] && waits[number].import.count)
            exchange(number);
}

void child_waits_begin(void)
{
    if (__atomic_exchange_n(&begun, 1, __ATOMIC_ACQ_REL))
        return;
    void *wait = dlsym(RTLD_DEFAULT, "wait4");
    if (!function_is_of_the_c_library(wait))
        return;
    real_wait = (wait_function *)wait;
    exchange_all();
}

bool child_waits_end(void)
{
    bool restored = true;
    for (unsigned number = 0; number < WAITS; number++) {
        struct import *import = &waits[number].import;
        bool is_as_before = import_restore(import);
        import->count = is_as_before ? 0 : import->count;
        restored &= is_as_before;
    }
    begun = 0;
    return restored;
}
