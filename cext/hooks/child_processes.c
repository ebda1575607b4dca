#include "hooks/child_processes.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include "core/children.h"
#include "core/clock.h"
#include "core/fields.h"
#include "core/fork.h"
#include "core/open_file.h"
#include "core/own_thread.h"
#include "core/preload.h"
#include "core/program_name.h"
#include "core/recorder.h"
#include "core/spare_stack.h"
#include "cpython/sites.h"
#include "hooks/call_result.h"
#include "hooks/descriptors.h"
#include "hooks/environment_copies.h"
#include "hooks/object_descriptor.h"
#include "hooks/path_objects.h"
#include "hooks/slot.h"

/* --- programs */

/* A path as the system has it; false for anything else. */
static bool copy_path(PyObject *path, char text[PATH_BYTES])
{
    PyObject *bytes = path ? encoded_path(path) : NULL;
    bool fits = bytes && PyBytes_GET_SIZE(bytes) < PATH_BYTES;
    if (fits)
        memcpy(text, PyBytes_AS_STRING(bytes), (size_t)PyBytes_GET_SIZE(bytes) + 1);
    Py_XDECREF(bytes);
    return fits;
}

/* What a child's name is worked out from, in memory of our own: the thread's stack may be small. */
struct naming {
    struct child *child;
    bool is_searched;
    char text[PATH_BYTES]; /* empty: it is unknown */
    char found[PATH_BYTES], relative[PATH_BYTES], given[PATH_BYTES];
};

static void name_program(void *data)
{
    struct naming *naming = data;
    struct child *child = naming->child;
    const char *path = naming->is_searched && program_find(naming->text, naming->found) ? naming->found : naming->text;
    enum reason reason = program_reason(path);
    const char *why = preload_follows(reason) ? NULL : reason_words(reason);
    child->command = program_intern(path);
    child->why = why ? intern_literal(why) : 0;
}

/* A relative path begins where the child does. */
static bool copy_path_from(PyObject *path, PyObject *directory, struct naming *naming)
{
    char *text = naming->text;
    if (!copy_path(path, text) || text[0] == '/' || !directory || directory == Py_None)
        return path && text[0];
    memcpy(naming->relative, text, sizeof naming->relative);
    return copy_path(directory, naming->given) && absolute_path(naming->given, naming->relative, text);
}

static void take_paths(struct naming *naming, PyObject *paths, PyObject *directory)
{
    for (Py_ssize_t index = 0; index < count_of(paths); index++)
        if (copy_path_from(PyTuple_GET_ITEM(paths, index), directory, naming) && program_is_there(naming->text))
            break;
}

/* An open file is run under its number. With `path` it is known what the child itself runs. */
static void take_name(struct naming *naming, const struct call *call, const char *path)
{
    naming->is_searched = call->slot->effect == EFFECT_search;
    if (path)
        snprintf(naming->text, PATH_BYTES, "%s", path);
    else if (call->slot->effect == EFFECT_fork_exec)
        take_paths(naming, argument_of(call, 1), argument_of(call, 4));
    else if (call->slot->effect == EFFECT_exec && call->descriptor >= 0)
        snprintf(naming->text, PATH_BYTES, OWN_PROC "/fd/%d", call->descriptor);
    else if (!copy_path(argument_of(call, 0), naming->text))
        naming->text[0] = 0;
}

static void name_spawned(struct child *child, const struct call *call, const char *path)
{
    struct reading begin = own_begin(current_thread);
    struct naming *naming = spare_take();
    if (naming) {
        naming->child = child;
        take_name(naming, call, path);
        if (naming->text[0])
            spare_run(naming, name_program, naming);
        if (call->slot->effect == EFFECT_exec && call->descriptor >= 0)
            child->command = call->span.detail;
        spare_release(naming);
    }
    own_end(current_thread, begin);
}

static void name_shell(struct child *child)
{
    struct naming *naming = spare_take();
    if (!naming)
        return;
    naming->child = child;
    strcpy(naming->text, "/bin/sh");
    spare_run(naming, name_program, naming);
    spare_release(naming);
}

/* The environment that the program is given; NULL if that is not known. */
static PyObject *environment_given(const struct call *call)
{
    if (call->slot->passes == PASSES_own)
        return Py_None;
    return argument_of(call, call->slot->effect == EFFECT_fork_exec ? 5 : 2);
}

/* It could be followed. */
static void note_switched_off(struct child *child, const struct call *call)
{
    PyObject *environment = environment_given(call);
    if (!child->why && environment && says_off(environment))
        child->why = intern_literal("switched off by INTERPOSE");
}

/* --- before the call: what may not return, or not soon */

void becomes(struct call *call, const char *path)
{
    struct child child = {
        .start_ns = clock_ns(CLOCK_MONOTONIC), .how = CHILD_EXEC, .stack = stack_here(PyThreadState_Get())};
    name_spawned(&child, call, path);
    note_switched_off(&child, call);
    call->child = recorder_starts(&child);
}

void starts_shell(struct call *call)
{
    struct child child = {
        .start_ns = clock_ns(CLOCK_MONOTONIC), .how = CHILD_SHELL, .stack = stack_here(PyThreadState_Get())};
    name_shell(&child);
    children_waited_for();
    call->child = recorder_starts(&child);
}

/* --- after it */

static uint32_t pid_of(PyObject *number)
{
    int pid = number && PyLong_Check(number) ? descriptor_of_number(number) : -1;
    return pid > 0 ? (uint32_t)pid : 0;
}

void forked(const struct call *call, PyObject *result)
{
    uint32_t number = call->span.thread->fork;
    recorder_starts(&(struct child){
        .start_ns = call->span.begin.wall_ns,
        .how = CHILD_FORK,
        .pid = pid_of(PyTuple_Check(result) ? first_of(result) : result),
        .number = number,
        .why = recorder_follows(number) ? 0 : intern_literal("excluded by INTERPOSE_FOLLOW"),
        .stack = call->span.stack,
    });
}

void spawned(const struct call *call, PyObject *result)
{
    struct child child = {
        .start_ns = call->span.begin.wall_ns, .how = CHILD_SPAWN, .pid = pid_of(result), .stack = call->span.stack};
    name_spawned(&child, call, NULL);
    note_switched_off(&child, call);
    recorder_starts(&child);
}

void shell_ended(const struct call *call, PyObject *result)
{
    int overflow;
    long status = PyLong_CheckExact(result) ? PyLong_AsLongAndOverflow(result, &overflow) : 0;
    if (call->child)
        child_ended(call->child, (int32_t)status, clock_ns(CLOCK_MONOTONIC));
}

void start_failed(const struct call *call)
{
    struct child child = {.start_ns = call->span.begin.wall_ns,
                          .how = CHILD_SPAWN,
                          .error = error_number_here(),
                          .stack = call->span.stack};
    switch ((enum effect)call->slot->effect) {
    case EFFECT_fork:
        child.how = CHILD_FORK;
        child.number = call->span.thread->fork;
        recorder_starts(&child);
        break;
    case EFFECT_spawn:
    case EFFECT_search:
    case EFFECT_fork_exec:
        name_spawned(&child, call, NULL);
        recorder_starts(&child);
        break;
    case EFFECT_popen:
        children_failed(call->span.thread->number, child.start_ns, child.error);
        break;
    case EFFECT_exec:
    case EFFECT_shell:
        if (call->child)
            call->child->error = child.error;
        break;
    default:
        break;
    }
}

/* --- waiting */

void waited(PyObject *result)
{
    PyObject *status = PyTuple_Check(result) && PyTuple_GET_SIZE(result) > 1 ? PyTuple_GET_ITEM(result, 1) : NULL;
    uint32_t pid = pid_of(first_of(result));
    int overflow, how = status && PyLong_CheckExact(status) ? (int)PyLong_AsLongAndOverflow(status, &overflow) : -1;
    if (pid && how >= 0 && (WIFEXITED(how) || WIFSIGNALED(how)))
        children_ended(pid, how, clock_ns(CLOCK_MONOTONIC));
}

/* What waitid(2) says, as waitpid(2) would: -1 if the child continues. */
static int status_of_code(long code, long status)
{
    switch (code) {
    case CLD_EXITED:
        return W_EXITCODE((int)status & 0xff, 0);
    case CLD_KILLED:
        return (int)status & 0x7f;
    case CLD_DUMPED:
        return ((int)status & 0x7f) | WCOREFLAG;
    default:
        return -1;
    }
}

void waited_by_id(PyObject *result)
{
    if (!PyTuple_Check(result) || PyTuple_GET_SIZE(result) < 5)
        return;
    int overflow;
    long status = PyLong_AsLongAndOverflow(PyTuple_GET_ITEM(result, 3), &overflow);
    int how = status_of_code(PyLong_AsLongAndOverflow(PyTuple_GET_ITEM(result, 4), &overflow), status);
    if (how >= 0)
        children_ended(pid_of(first_of(result)), how, clock_ns(CLOCK_MONOTONIC));
}
