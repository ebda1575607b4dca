#define _GNU_SOURCE
#include "hooks/forked_exec.h"

#include <errno.h>
#include <unistd.h>

#include "core/import_table.h"
#include "core/program.h"
#include "hooks/child_processes.h"

enum { FUNCTION = 21 }; /* the place of preexec_fn among the arguments */

/* The call of this thread, in whose child a function runs before the program; NULL if there is none. The child has a
   copy of the call. */
static __thread struct call *forking __attribute__((tls_model("initial-exec")));

static int begun;

/* --- in their places */

/* Of several paths, which are tried in turn, most are of no file. */
static void before(const char *path)
{
    if (forking && program_is_there(path))
        becomes(forking, path);
}

static int after(int failed)
{
    if (forking && forking->child)
        forking->child->error = (uint32_t)errno;
    if (forking)
        forking->child = NULL;
    return failed;
}

static int exec_with(const char *path, char *const *words, char *const *variables)
{
    before(path);
    return after(execve(path, words, variables));
}

static int exec_without(const char *path, char *const *words)
{
    before(path);
    return after(execv(path, words));
}

/* --- exchanging */

static struct {
    struct import import;
    void *ours;
} execs[] = {
    {{.name = "execve"}, (void *)exec_with},
    {{.name = "execv"}, (void *)exec_without},
};
enum { EXECS = sizeof execs / sizeof *execs };

static void exchange_all(const void *within)
{
    struct import *wanted[EXECS + 1] = {NULL};
    for (unsigned number = 0; number < EXECS; number++)
        if (execs[number].import.count) /* ours could not be taken out, and is called still */
            return;
        else
            wanted[number] = &execs[number].import;
    if (imports_find(wanted, within))
        return;
    for (unsigned number = 0; number < EXECS; number++) {
        struct import *import = &execs[number].import;
        bool taken = (!import->real || function_is_of_the_c_library(import->real)) &&
                     import_put(import, execs[number].ours);
        if (!taken)
            import->count = 0;
    }
}

void forked_exec_begin(struct call *call)
{
    PyObject *function = argument_of(call, FUNCTION);
    forking = function && function != Py_None ? call : NULL;
    call->child = NULL;
    if (forking && !__atomic_exchange_n(&begun, 1, __ATOMIC_ACQ_REL))
        exchange_all(call->slot->real);
}

void forked_exec_over(void)
{
    forking = NULL;
}

bool forked_exec_end(void)
{
    bool restored = true;
    for (unsigned number = 0; number < EXECS; number++) {
        struct import *import = &execs[number].import;
        bool is_as_before = import_restore(import);
        import->count = is_as_before ? 0 : import->count;
        restored &= is_as_before;
    }
    begun = 0;
    return restored;
}
