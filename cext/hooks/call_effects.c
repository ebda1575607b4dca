#include "hooks/call_effects.h"

#include <errno.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kinds.h"
#include "core/children.h"
#include "cpython/attributes.h"
#include "hooks/answers.h"
#include "hooks/child_processes.h"
#include "hooks/child_waits.h"
#include "hooks/descriptors.h"
#include "hooks/forked_exec.h"
#include "hooks/idle_descriptors.h"
#include "hooks/loop_waits.h"
#include "hooks/object_descriptor.h"
#include "hooks/open_calls.h"
#include "hooks/slot.h"

int descriptor_at_attribute(const struct call *call)
{
    PyObject *ways = call->slot->attributes;
    PyObject *found = call->owner && ways ? attribute_at(call->owner, PyTuple_GET_ITEM(ways, 0)) : NULL;
    int number = descriptor_of(found);
    Py_XDECREF(found);
    return number;
}

/* Was it made within a wait for work? Itself it may still be in the table of calls in progress. */
static bool is_for_work(const struct call *call)
{
    const struct thread *thread = call->span.thread;
    if (!thread)
        return current_thread && inside(current_thread, KIND_idle);
    uint32_t index = call->span.index;
    return index > 0 && index <= OPEN_CALLS && is_idle_number(thread->record->open[index - 1].intrinsic);
}

static void forget_range(const struct call *call)
{
    PyObject *low = argument_of(call, 0), *high = argument_of(call, 1);
    if (!low || !high || !PyLong_CheckExact(low) || !PyLong_CheckExact(high))
        return;
    int begin = descriptor_of_number(low), end = descriptor_of_number(high);
    int highest = __atomic_load_n(&descriptors_end, __ATOMIC_RELAXED);
    if (end < 0 || end > highest)
        end = highest;
    for (int number = begin < 0 ? 0 : begin; number < end; number++)
        descriptor_forget(number);
}

static void connects(const struct call *call)
{
    struct descriptor *known = descriptor_known(call->descriptor);
    if (!known)
        return;
    struct descriptor now = descriptor_now(known);
    now.role = ROLE_CLIENT;
    now.last = LAST_NOTHING;
    now.used_as = __atomic_load_n(&service, __ATOMIC_RELAXED);
    if (call->span.detail)
        now.name = call->span.detail;
    descriptor_put(known, &now);
}

void change_before(struct call *call)
{
    switch ((enum effect)call->slot->effect) {
    case EFFECT_forget:
        descriptor_forget(call->descriptor);
        break;
    case EFFECT_range:
        forget_range(call);
        break;
    case EFFECT_connect:
        connects(call);
        break;
    case EFFECT_accept:
        serves_by(call->descriptor);
        break;
    case EFFECT_watch:
        descriptor_watch(call->descriptor, watcher_of(call->owner), watch);
        break;
    case EFFECT_unwatch:
        descriptor_watch(call->descriptor, watcher_of(call->owner), unwatch);
        break;
    case EFFECT_fork_exec:
        forked_exec_begin(call);
        break;
    case EFFECT_exec:
        forked_exec_begin(call);
        becomes(call, NULL);
        break;
    case EFFECT_shell:
        starts_shell(call);
        break;
    case EFFECT_wait:
    case EFFECT_waitid:
        child_waits_begin();
        children_waited_for();
        break;
    default:
        break;
    }
}

static void forget_made(PyObject *made)
{
    if (PyLong_CheckExact(made))
        descriptor_forget(descriptor_of_number(made));
    for (Py_ssize_t index = 0; PyTuple_CheckExact(made) && index < PyTuple_GET_SIZE(made); index++)
        descriptor_forget(descriptor_of(PyTuple_GET_ITEM(made, index)));
}

/* Of os.pipe: its two ends. */
static void made(PyObject *result)
{
    forget_made(result);
    if (PyTuple_CheckExact(result) && PyTuple_GET_SIZE(result) == 2)
        descriptors_are_ends(descriptor_of(PyTuple_GET_ITEM(result, 0)), descriptor_of(PyTuple_GET_ITEM(result, 1)));
}

/* For an object with a path: KIND_COUNT for a device, which may be a terminal, and for a path that does not
   exist. */
static enum kind kind_of_opened(int number)
{
    struct stat status;
    int saved = errno;
    bool there = fstat(number, &status) == 0;
    errno = saved;
    if (!there || S_ISCHR(status.st_mode) || S_ISSOCK(status.st_mode))
        return KIND_COUNT;
    return S_ISFIFO(status.st_mode) ? KIND_process : KIND_file;
}

/* A raw file is made by its initialiser, which gives no result. */
static void opened(const struct call *call, PyObject *result)
{
    PyObject *path = subject_of(call);
    int number = descriptor_of(result ? result : call->owner);
    if (path && PyLong_Check(path))
        return;
    descriptor_forget(number);
    enum kind kind = number > STDERR_FILENO && call->span.detail ? kind_of_opened(number) : KIND_COUNT;
    if (kind != KIND_COUNT)
        descriptor_set(number, (struct descriptor){.kind = (uint8_t)kind, .name = call->span.detail});
}

static void accepted(PyObject *result)
{
    PyObject *number = PyTuple_Check(result) && PyTuple_GET_SIZE(result) ? PyTuple_GET_ITEM(result, 0) : NULL;
    int descriptor = descriptor_of(number);
    descriptor_forget(descriptor);
    descriptor_has_role(descriptor, ROLE_CONNECTION);
    if (loop_waits_are_on() && current_thread) /* gevent's loop registers it only if no request is there yet */
        descriptor_watch(descriptor, watcher_of_thread(current_thread->number), watch);
}

/* Whom os.waitid only looks at is noted by whoever reaps it: the kernel counts what it used then. */
static bool leaves_child(const struct call *call)
{
    PyObject *options = argument_of(call, 2);
    int overflow;
    return options && PyLong_CheckExact(options) && PyLong_AsLongAndOverflow(options, &overflow) & WNOWAIT;
}

void change_after(const struct call *call, PyObject *result, uint64_t bytes)
{
    switch ((enum effect)call->slot->effect) {
    case EFFECT_open:
        opened(call, result);
        break;
    case EFFECT_make:
        made(result);
        break;
    case EFFECT_socket:
        if (!argument_of(call, 3) || argument_of(call, 3) == Py_None)
            descriptor_forget(descriptor_of(call->owner));
        break;
    case EFFECT_unwatch_all:
        unwatch_all(result && result != Py_None ? result : call->owner);
        if (result == Py_None && current_thread)
            answers_forget(current_thread->number);
        break;
    case EFFECT_listen:
        descriptor_has_role(call->descriptor, ROLE_LISTENER);
        break;
    case EFFECT_accept:
        accepted(result);
        break;
    case EFFECT_send:
        descriptor_moved(call->descriptor, is_for_work(call) ? LAST_FOR_WORK : LAST_SENT, false);
        break;
    case EFFECT_receive:
        if (bytes)
            descriptor_moved(call->descriptor, is_for_work(call) ? LAST_FOR_WORK : LAST_RECEIVED, false);
        break;
    case EFFECT_one_way:
        descriptor_moved(descriptor_at_attribute(call), LAST_FOR_WORK, false);
        break;
    case EFFECT_fork:
        if (PyTuple_Check(result))
            forget_made(result);
        forked(call, result);
        break;
    case EFFECT_fork_exec:
    case EFFECT_spawn:
    case EFFECT_search:
        spawned(call, result);
        break;
    case EFFECT_shell:
        shell_ended(call, result);
        break;
    case EFFECT_wait:
        waited(result);
        break;
    case EFFECT_waitid:
        if (!leaves_child(call))
            waited_by_id(result);
        break;
    default:
        break;
    }
}
