#define _GNU_SOURCE
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "hooks/loop_children.h"

#include <errno.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/children.h"
#include "core/clock.h"
#include "core/follow.h"
#include "core/fork.h"
#include "core/passed_variables.h"
#include "core/preload.h"
#include "core/program_name.h"
#include "core/recorder.h"
#include "core/spare_stack.h"
#include "cpython/sites.h"
#include "hooks/descriptors.h"

/* In memory of our own: a program's environment is large. */
struct loop_program {
    const char *name;
    char *const *words;
    char **before; /* environ */
    struct child child, *record;
    char path[PATH_BYTES];
    struct passed_variables passed;
};
_Static_assert(sizeof(struct loop_program) <= SPARE_BYTES - SPARE_STACK_BYTES, "it leaves room for the stack");

/* uvloop's module has the interpreter lock when it forks, and so has its child. */
static uint32_t stack_of_loop(void)
{
    PyThreadState *state = recorded_state();
    return state ? stack_here(state) : 0;
}

void loop_forked(pid_t child, uint64_t start_ns)
{
    if (!recorder_is_on() || !recorded_state() || !recording())
        return;
    uint32_t number = current_thread->fork; /* counted by what runs before a fork */
    recorder_starts(&(struct child){
        .start_ns = start_ns,
        .how = CHILD_FORK,
        .pid = (uint32_t)child,
        .number = number,
        .why = recorder_follows(number) ? 0 : intern_literal("excluded by INTERPOSE_FOLLOW"),
        .stack = stack_of_loop(),
    });
}

static void prepare(void *data)
{
    struct loop_program *program = data;
    const char *path = program_find(program->name, program->path) ? program->path : NULL;
    enum reason reason = program_reason(path ? path : program->name);
    const char *why = preload_follows(reason) ? NULL : reason_words(reason);
    program->child.command = program_intern(path ? path : program->name);
    program->child.why = why ? intern_literal(why) : 0;
    if (!follow_is_off())
        environ = (char **)pass_variables(environ, path, program->words, &program->passed);
    program->record = recorder_starts(&program->child);
}

struct loop_program *loop_becomes(const char *name, char *const *words)
{
    struct loop_program *program = recorder_is_on() && recording() ? spare_take() : NULL;
    if (!program)
        return NULL;
    *program = (struct loop_program){.name = name, .words = words, .before = environ};
    program->child =
        (struct child){.start_ns = clock_ns(CLOCK_MONOTONIC), .how = CHILD_EXEC, .stack = stack_of_loop()};
    spare_run(program, prepare, program);
    return program;
}

void loop_has_not_become(struct loop_program *program, int error)
{
    if (!program)
        return;
    environ = program->before;
    if (program->record)
        program->record->error = (uint32_t)error;
    spare_release(program);
}

pid_t loop_waits_for(pid_t which, int *status, int options)
{
    struct rusage used;
    int how = 0;
    pid_t child = wait4(which, &how, options, &used);
    int saved = errno;
    if (status && child > 0)
        *status = how;
    if (child > 0 && (WIFEXITED(how) || WIFSIGNALED(how)) && recorder_is_on()) {
        children_reaped((uint32_t)child, &used);
        children_ended((uint32_t)child, how, clock_ns(CLOCK_MONOTONIC));
    }
    errno = saved;
    return child;
}
