#define _GNU_SOURCE
#include "hooks/forked_exec.h"

#include <errno.h>
#include <unistd.h>

#include "core/import_table.h"
#include "core/program.h"
#include "hooks/child_processes.h"

enum { FUNCTION = 21 }; /* the place of preexec_fn among the arguments */

/* The innermost call of this thread that starts a program, or becomes one; NULL if there is none. The preexec_fn of
   fork_exec may make such calls, and the child has a copy of all of them. */
static __thread struct call *starting __attribute__((tls_model("initial-exec")));

static int exchanged;

static bool runs_a_function_first(const struct call *call)
{
    PyObject *function = call->slot->effect == EFFECT_fork_exec ? argument_of(call, FUNCTION) : NULL;
    return function && function != Py_None;
}

/* The call whose child this process is; NULL if there is nothing to note, as for execv, which is noted where it is called. */
static struct call *to_note(void)
{
    return starting && runs_a_function_first(starting) ? starting : NULL;
}

/* --- in their places */

/* Of several paths, which are tried in turn, most are of no file. */
static void before(const char *path)
{
    struct call *call = to_note();
    if (call && program_is_there(path))
        becomes(call, path);
}

static int after(int failed)
{
    struct call *call = to_note();
    if (call && call->child)
        call->child->error = (uint32_t)errno;
    if (call)
        call->child = NULL;
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
    if (current_thread->record->fields.depth >= OPEN_CALLS) /* the call is dropped, and its end is not reported */
        return;
    call->child = NULL;
    call->around = starting;
    starting = call;
    if (runs_a_function_first(call) && !__atomic_exchange_n(&exchanged, 1, __ATOMIC_ACQ_REL))
        exchange_all(call->slot->real);
}

void forked_exec_over(const struct call *call)
{
    if (starting == call)
        starting = call->around;
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
    exchanged = 0;
    return restored;
}
