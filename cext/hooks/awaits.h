/* Calls that are awaited: timed by their steps.

   A call of a coroutine function makes a coroutine and does nothing else; what it was made for is done in steps, between
   which others run. So the call is no event, but the coroutine is, from its first step to its end. To see the steps it
   is given another type while it is suspended: one under its own, alike in everything but that its steps are timed.
   While it runs, and when it has ended, it is of its own type. The coroutine is the program's own all the time: nothing
   stands in front of it. It is so with what an asynchronous generator gives for each item.

   A step is in the table of calls in progress as a call is, under the number of the whole. What of the time it was
   suspended is added to what was called inside: self time is what its own steps took on the thread. */
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <arpa/inet.h>
#include <dlfcn.h>
#include <errno.h>
#include <netinet/in.h>
#include <semaphore.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <structmember.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include "core/detail_levels.h"
#include "core/recorder.h"
#include "core/kinds.h"
#include "core/levels.h"
#include "hooks/slot.h"
#include "hooks/stubs.h"
#include "hooks/filtering.h"
#include "hooks/object_descriptor.h"
#include "hooks/idle_descriptors.h"
#include "hooks/descriptors.h"
#include "cpython/sites.h"
#include "core/statement.h"
#include "hooks/attribute_names.h"
#include "hooks/object_texts.h"
#include "hooks/statement_detail.h"
#include "hooks/path_detail.h"
#include "hooks/address_detail.h"
#include "hooks/command_detail.h"
#include "core/filter.h"
#include "cpython/frame.h"
#include "hooks/filtered_stacks.h"
#include "hooks/lock_holders.h"
#include "hooks/locks.h"
#include "cpython/attributes.h"
#include "hooks/url_detail.h"
#include "hooks/route_detail.h"
#include "cpython/ownership.h"
#include "hooks/database_server.h"
#include "hooks/call.h"
#include "hooks/call_detail.h"
#include "hooks/open_calls.h"
#include "hooks/call_kind.h"
#include "core/program.h"
#include "hooks/call_result.h"
#include "hooks/child_processes.h"
#include "hooks/call_effects.h"
#include "interpose_collector.h"
#include "collectors/identification.h"
#include "core/intern.h"
#include "collectors/pseudo_sections.h"
#include "collectors/claimed_names.h"
#include "collectors/claims.h"
#include "collectors/transaction_names.h"
#include "collectors/collectors.h"
#include "collectors/collected_places.h"
#include "collectors/collecting.h"
#include "core/transaction_sampling.h"
#include "core/follow.h"
#include "core/child_variables.h"
#include "core/preload.h"
#include "hooks/started_program.h"
#include "hooks/environment_variables.h"
#include "hooks/environment_copies.h"
#include "hooks/child_environment.h"
#include "hooks/passed_environment.h"
#include "hooks/filtered_places.h"
#include "hooks/fetches.h"
#include "cpython/tasks.h"
#include "core/dialogue.h"
#include "hooks/curses_screen.h"
#include "hooks/terminal.h"
#include "cpython/thread_names.h"
#include "hooks/lock_passing.h"
#include "hooks/serving.h"
#include "hooks/hot_path.h"
#include "hooks/shim.h"
#include "hooks/transaction_marks.h"

VISIBLE extern int _PyGen_SetStopIterationValue(PyObject *);

/* An awaited call in progress, or an asynchronous generator whose items are to be awaited. */
struct await {
    PyObject *awaited; /* no reference: it is forgotten before it dies. NULL in an unused place */
    const struct slot *slot;
    const void *owner; /* whose method it is: compared, never looked into */
    PyObject *told;    /* what tells by the end what it was; a reference, or NULL */
    PyObject *scope;   /* what servers and frameworks hand on of the request that it serves; a reference, or NULL */
    uint64_t bytes;    /* as far as the arguments tell */
    uint64_t start_ns, start_cpu_ns, running_ns, cpu_ns, inner_wall_ns, inner_cpu_ns;
    uint32_t call, parent, intrinsic, stack, detail, task, thread;
    bool is_inside_passed_over; /* in a task of its own */
};

/* One of the types: its own, and the one under it. */
struct sort {
    PyTypeObject type, *plain;
    PyCFunction send, close;
    fast_function throw;
};

static struct sort coroutines, sendings, throwings, generators;

static struct sort *const sorts[] = {&coroutines, &sendings, &throwings, &generators};

static PyObject *name_of_awaited;

/* --- what is in progress */

static struct {
    struct await *places;
    size_t size, used;
} awaits;

/* How many of those in progress have a scope, by what it hashes to: where there is one alone, no other need be looked for. */
static uint32_t awaits_by_scope[1024];

static inline uint32_t *those_of_scope(const PyObject *scope)
{
    size_t hash = ((uintptr_t)scope >> 4) * 0x9e3779b97f4a7c15u >> 20;
    return &awaits_by_scope[hash % (sizeof awaits_by_scope / sizeof *awaits_by_scope)];
}

static size_t place_of_await(const PyObject *awaited)
{
    size_t place = ((uintptr_t)awaited >> 4) * 0x9e3779b97f4a7c15u >> 20;
    while (awaits.places[place &= awaits.size - 1].awaited && awaits.places[place].awaited != awaited)
        place++;
    return place;
}

static inline struct await *await_find(const PyObject *awaited)
{
    struct await *found = awaits.size ? &awaits.places[place_of_await(awaited)] : NULL;
    return found && found->awaited ? found : NULL;
}

static bool awaits_grow(void)
{
    struct await *old = awaits.places;
    size_t size = awaits.size, grown = size ? size * 2 : 256;
    struct await *places = calloc(grown, sizeof *places);
    if (!places)
        return false;
    awaits.places = places;
    awaits.size = grown;
    for (size_t place = 0; place < size; place++)
        if (old[place].awaited)
            places[place_of_await(old[place].awaited)] = old[place];
    free(old);
    return true;
}

static struct await *await_add(PyObject *awaited)
{
    if (awaits.used * 2 >= awaits.size && !awaits_grow())
        return NULL;
    struct await *await = &awaits.places[place_of_await(awaited)];
    awaits.used++;
    *await = (struct await){.awaited = awaited};
    return await;
}

/* What stands behind it in the same row is put where it is found. */
static void await_forget(const PyObject *awaited)
{
    struct await *await = await_find(awaited);
    if (!await)
        return;
    size_t place = (size_t)(await - awaits.places);
    PyObject *told = await->told, *scope = await->scope;
    if (scope)
        --*those_of_scope(scope);
    await->awaited = NULL;
    awaits.used--;
    while (awaits.places[place = (place + 1) & (awaits.size - 1)].awaited) {
        struct await moved = awaits.places[place];
        awaits.places[place].awaited = NULL;
        awaits.places[place_of_await(moved.awaited)] = moved;
    }
    Py_XDECREF(told); /* which may run anything, and so comes last, with the other */
    Py_XDECREF(scope);
}

/* Those of a parent are not the child's. */
static void awaits_forget(void)
{
    free(awaits.places);
    awaits.places = NULL;
    awaits.size = awaits.used = 0;
    memset(awaits_by_scope, 0, sizeof awaits_by_scope);
    tasks_forget();
}

/* --- a step */

struct step {
    struct thread *thread; /* NULL: it is not timed */
    struct reading begin;
    uint32_t index, call;
    PyObject *awaited;
    PyObject *result; /* of the whole, where this was the last and it is told; no reference */
};

/* The call of a server, or framework, in progress on the thread that the same request is served by, in another task; the
   outermost where there are several. NULL where there is none. A server's own begins a request, and is inside of none. */
static __attribute__((noinline)) struct await *request_around(const struct await *await, const struct thread *thread)
{
    bool is_servers = await->slot->detail == DETAIL_served && await->slot->attributes;
    struct await *found = NULL;
    if (is_servers || *those_of_scope(await->scope) < 2)
        return NULL;
    for (size_t place = 0; place < awaits.size; place++) {
        struct await *each = &awaits.places[place];
        bool is_another = each->awaited && each != await;
        bool is_around = is_another && each->scope == await->scope && each->call && each->thread == thread->number;
        if (is_around && (!found || each->start_ns < found->start_ns))
            found = each;
    }
    return found;
}

/* A framework may serve a request in a task that it begins within the server's call: it is inside of that all the same,
   and has its fate. */
static void await_joins(struct await *await, const struct thread *thread)
{
    const struct await *around = request_around(await, thread);
    unsigned further = chosen.one_in ? chosen_further(await->slot->intrinsic) : 0;
    if (!around)
        return;
    await->parent = around->call;
    if (!further)
        return;
    await->is_inside_passed_over = is_number_passed_over(around->intrinsic);
    await->intrinsic = await->slot->intrinsic + (await->is_inside_passed_over ? further : 0);
}

static void await_begins(struct await *await, struct thread *thread, struct reading now, uint32_t task)
{
    struct thread_record *record = thread->record;
    uint32_t index = record->fields.depth;
    if (++thread->calls == 0)
        thread->calls = 1;
    await->call = thread->calls;
    await->thread = thread->number;
    await->start_ns = now.wall_ns;
    await->start_cpu_ns = now.cpu_ns;
    await->parent = index ? record->open[index - 1].call : 0;
    await->task = task;
    if (UNLIKELY(await->scope && !index))
        await_joins(await, thread);
}

static void step_begin(struct step *step, PyObject *awaited)
{
    struct await *await = await_find(awaited);
    PyThreadState *state = await ? recorded_state() : NULL;
    struct thread *thread = state && !recorder_paused() ? recording() : NULL;
    step->thread = NULL;
    if (!thread || thread->quiet || thread->record->fields.depth >= OPEN_CALLS)
        return;
    if (UNLIKELY(thread->marked))
        marks_settle(thread);
    uint32_t task = await->call ? await->task : task_here(awaited); /* runs anything; the table may have grown */
    struct thread_record *record = thread->record;
    await = await_find(awaited);
    if (!await || !thread->recording || record->fields.depth >= OPEN_CALLS)
        return;
    struct reading now = clock_read(&thread->clock);
    if (!await->call)
        await_begins(await, thread, now, task);
    *step = (struct step){thread, now, record->fields.depth, await->call, awaited, NULL};
    struct open_call *open = &record->open[step->index];
    *open = (struct open_call){
        .start_ns = await->start_ns,
        .start_cpu_ns = now.cpu_ns - await->cpu_ns,
        .call = await->call,
        .intrinsic = await->intrinsic,
        .stack = await->stack,
        .detail = await->detail,
    };
    record->fields.made++;
    __atomic_store_n(&record->fields.depth, step->index + 1, __ATOMIC_RELEASE);
    if (UNLIKELY(thread->marked))
        marks_return(thread, await->call, now);
}

/* It has ended on another thread than it began on: it counts for this one, inside of nothing. The CPU time is of this
   one, too, when it came here. */
static void await_moves(struct await *await, struct thread *thread, uint64_t cpu_ns)
{
    await->thread = thread->number;
    await->start_cpu_ns = cpu_ns;
    await->parent = 0;
    if (++thread->calls == 0)
        thread->calls = 1;
    await->call = thread->calls;
}

/* What the whole moved: as its result tells, or its arguments did. */
static uint64_t bytes_of_await(const struct await *await, PyObject *result)
{
    if (await->slot->moves >= MOVES_row)
        return rows_of(await->slot, result);
    return await->slot->moves == MOVES_result ? size_of(result) : await->bytes;
}

static uint32_t route_of_await(const struct await *await)
{
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    uint32_t number = detail_of_route(await->slot, await->told);
    PyErr_Restore(type, value, traceback);
    return number;
}

/* A driver's own object is told only by what it kept of it; where that is what is awaited, it is there. */
static uint32_t detail_of_await(const struct await *await, PyObject *result)
{
    struct call call = {.slot = await->slot};
    uint32_t route = await->told ? route_of_await(await) : 0;
    if (route || await->detail || !result)
        return route ? route : await->detail;
    if (await->slot->subject == SUBJECT_RESULT)
        return late_detail(&call, result);
    return await->slot->detail == DETAIL_statement ? kept_statement(result) : 0;
}

/* A fetch of rows that never was suspended, as a call would be. */
static struct span span_of_step(const struct step *step, uint64_t wall_ns, uint64_t cpu_ns)
{
    return (struct span){.thread = step->thread,
                         .begin = step->begin,
                         .wall_ns = wall_ns,
                         .cpu_ns = cpu_ns,
                         .index = step->index,
                         .call = step->call};
}

/* What collectors make of it; they may run for others meanwhile, and so the table may grow. NULL: it is no more. */
static __attribute__((noinline)) struct await *collect_await(const struct step *step, struct await *await,
                                                             uint64_t wall_ns)
{
    struct span span = span_of_step(step, wall_ns, await->cpu_ns);
    span.begin = (struct reading){await->start_ns, await->start_cpu_ns};
    span.intrinsic = await->intrinsic;
    span.stack = await->stack;
    span.detail = await->detail;
    span.task = await->task;
    collect(&span, NULL, false);
    await = span_open(&span) ? await_find(step->awaited) : NULL;
    if (await)
        await->stack = span.stack;
    return await;
}

/* The event of an await that has ended. */
static void await_record(const struct step *step, struct await *await, uint64_t end_ns, uint64_t bytes, uint32_t error)
{
    struct thread *thread = step->thread;
    uint64_t wall_ns = end_ns - await->start_ns, suspended_ns = wall_ns - await->running_ns;
    if (UNLIKELY(await->thread != thread->number))
        await_moves(await, thread, step->begin.cpu_ns);
    if (UNLIKELY(recorder.interval_ns)) {
        wall_ns = await->cpu_ns;
        suspended_ns = 0;
        await->inner_wall_ns = await->inner_cpu_ns;
        if (!wall_ns && !is_told_by_program(await->intrinsic)) {
            thread->record->fields.made--;
            thread->record->fields.gathered++;
            return;
        }
    }
    struct event *event = event_place(thread);
    if (!event) {
        thread->record->fields.dropped++;
        return;
    }
    *event = (struct event){
        .start_ns = await->start_ns,
        .start_cpu_ns = await->start_cpu_ns,
        .wall_ns = wall_ns,
        .cpu_ns = await->cpu_ns,
        .inner_wall_ns = await->inner_wall_ns + suspended_ns,
        .inner_cpu_ns = await->inner_cpu_ns,
        .bytes = bytes,
        .thread = await->thread,
        .call = await->call,
        .parent = await->parent,
        .intrinsic = await->intrinsic,
        .stack = await->stack,
        .detail = detail_of_await(await, error ? NULL : step->result),
        .error = error,
        .task = await->task,
    };
    event_written(thread, await->start_ns, end_ns);
    if (UNLIKELY(recorder.governed))
        governor_note(await->intrinsic);
}

/* Another one of the same thread may have grown the table meanwhile: it is looked for again. */
static void step_end(struct step *step, bool ended, bool failed)
{
    struct thread *thread = step->thread;
    struct await *await = thread ? await_find(step->awaited) : NULL;
    if (!await || !thread->recording || thread != current_thread)
        return;
    struct thread_record *record = thread->record;
    uint32_t index = step->index;
    if (index >= record->fields.depth || record->open[index].call != step->call)
        return;
    struct reading now = clock_read(&thread->clock);
    if (UNLIKELY(thread->marked))
        marks_leave(thread, index, step->call, now);
    uint64_t wall_ns = now.wall_ns - step->begin.wall_ns;
    uint64_t cpu_ns = now.cpu_ns - record->open[index].start_cpu_ns - await->cpu_ns;
    cpu_ns = cpu_ns < wall_ns ? cpu_ns : wall_ns;
    uint64_t bytes = ended && !failed ? bytes_of_await(await, step->result) : 0;
    bool fetches = ended && await->slot->waits == WAITS_rows && await->start_ns == step->begin.wall_ns;
    struct span span = span_of_step(step, wall_ns, cpu_ns);
    if (fetches && !failed && rows_gather(await->owner, &span, bytes))
        return;
    if (ended && is_wait(await->slot) && await->start_ns == step->begin.wall_ns && did_not_wait(await->slot, &span)) {
        span_pass(&span);
        return;
    }
    if (UNLIKELY(recorder.interval_ns))
        wall_ns = cpu_ns = sampled_ns(thread, now.cpu_ns, cpu_ns);
    await->running_ns += wall_ns;
    await->cpu_ns += cpu_ns;
    await->inner_wall_ns += record->open[index].inner_wall_ns;
    await->inner_cpu_ns += record->open[index].inner_cpu_ns;
    span.intrinsic = await->intrinsic;
    if (is_inside_passed_over(&span) || UNLIKELY(await->is_inside_passed_over)) {
        span_forget(&span);
        return;
    }
    if (index) {
        record->open[index - 1].inner_wall_ns += wall_ns;
        record->open[index - 1].inner_cpu_ns += cpu_ns;
    }
    if (ended) {
        if (now.wall_ns - await->start_ns >= recorder.trigger_above_ns && !is_idle_number(await->intrinsic))
            recorder_trigger();
        uint32_t error = failed ? error_here() : 0;
        if (is_collecting())
            await = collect_await(step, await, now.wall_ns - await->start_ns);
        if (UNLIKELY(!await))
            return;
        await_record(step, await, now.wall_ns, bytes, error);
        if (await->slot->detail == DETAIL_statement)
            rows_begin(thread, await->owner, step->result);
        if (fetches)
            rows_recorded(await->owner, &span, bytes);
    } else
        record->fields.made--;
    close_call(record, index);
}

/* --- the types */

/* Of an object of either of the types: a method may be kept while it is of one, and called while it is of the other. */
static struct sort *sort_of(PyObject *object)
{
    const PyTypeObject *type = Py_TYPE(object);
    for (unsigned place = 0; place < sizeof sorts / sizeof *sorts; place++)
        if (type == &sorts[place]->type || type == sorts[place]->plain)
            return sorts[place];
    return &coroutines;
}

/* A coroutine says itself whether it has ended: it may only have refused. Of an item it is told by what it gave. */
static bool has_ended(PyObject *awaited, const struct sort *sort, bool gave)
{
    return sort == &coroutines ? ((PyCoroObject *)awaited)->cr_frame_state >= FRAME_COMPLETED : !gave;
}

static bool has_not_begun(PyObject *awaited, const struct sort *sort)
{
    return sort == &coroutines && ((PyCoroObject *)awaited)->cr_frame_state == FRAME_CREATED;
}

/* Only what was of our type, and so had been suspended, is timed. */
static struct step step_into(PyObject *awaited, struct sort *sort)
{
    struct step step = {.awaited = NULL};
    Py_INCREF(awaited); /* lest it die under us */
    if (Py_IS_TYPE(awaited, &sort->type)) {
        Py_SET_TYPE(awaited, sort->plain);
        step_begin(&step, awaited);
        step.awaited = awaited;
        if (!step.thread)
            marks_step(awaited, true);
    }
    return step;
}

/* After a step: how it ended is told by what it gave; NULL with nothing set is an end, too. */
static void stepped(struct step *step, struct sort *sort, PyObject *awaited, bool gave)
{
    if (!step->awaited) {
        Py_DECREF(awaited);
        return;
    }
    bool stopped = !gave && (!PyErr_Occurred() || PyErr_ExceptionMatches(PyExc_StopIteration));
    bool stays = !has_ended(awaited, sort, gave);
    step_end(step, !stays, !gave && !stopped && !PyErr_ExceptionMatches(PyExc_StopAsyncIteration));
    if (!step->thread)
        marks_step(awaited, false);
    struct await *await = await_find(awaited);
    if (await && has_not_begun(awaited, sort))
        await->call = 0;
    if (stays)
        Py_SET_TYPE(awaited, &sort->type);
    else
        await_forget(awaited);
    Py_DECREF(awaited);
}

#define STEP(awaited, gave, call) \
    struct sort *sort = sort_of(awaited); \
    struct step step = step_into(awaited, sort); \
    call; \
    stepped(&step, sort, awaited, gave);

static PySendResult step_send(PyObject *awaited, PyObject *value, PyObject **result)
{
    PySendResult how;
    STEP(awaited, how == PYGEN_NEXT, how = PyCoro_Type.tp_as_async->am_send(awaited, value, result);
         step.result = how == PYGEN_RETURN ? *result : NULL)
    return how;
}

static PyObject *coroutine_next(PyObject *awaited)
{
    PyObject *result;
    PySendResult how = step_send(awaited, Py_None, &result);
    if (how != PYGEN_RETURN)
        return result;
    if (result != Py_None)
        _PyGen_SetStopIterationValue(result);
    Py_DECREF(result);
    return NULL;
}

static PyObject *step_next(PyObject *awaited)
{
    PyObject *result;
    STEP(awaited, result, result = sort->plain->tp_iternext(awaited))
    return result;
}

static PyObject *method_send(PyObject *awaited, PyObject *value)
{
    PyObject *result;
    STEP(awaited, result, result = sort->send(awaited, value))
    return result;
}

static PyObject *method_throw(PyObject *awaited, PyObject *const *arguments, Py_ssize_t count)
{
    PyObject *result;
    STEP(awaited, result, result = sort->throw(awaited, arguments, count))
    return result;
}

/* It goes on as it would without us, and is not looked at any more. */
static void let_go(PyObject *awaited, struct sort *sort)
{
    if (Py_IS_TYPE(awaited, &sort->type))
        Py_SET_TYPE(awaited, sort->plain);
    await_forget(awaited);
}

/* Closed, it has ended, whatever it says; what it gives is None. What had not begun never was. */
static PyObject *method_close(PyObject *awaited, PyObject *nothing)
{
    PyObject *result;
    const struct await *await = await_find(awaited);
    if (await && !await->call)
        let_go(awaited, sort_of(awaited));
    STEP(awaited, (PyObject *)NULL, result = sort->close(awaited, nothing))
    return result;
}

static PyMethodDef step_methods[] = {
    {"send", method_send, METH_O, NULL},
    {"throw", (PyCFunction)(void *)method_throw, METH_FASTCALL, NULL},
    {"close", method_close, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};

/* Who awaits it steps it by us. One that somebody awaits already is left to be refused as it would be without us. */
static PyObject *coroutine_await(PyObject *awaited)
{
    PyObject *inner = PyObject_GetAttr(awaited, name_of_awaited);
    bool is_awaited = inner && inner != Py_None;
    Py_XDECREF(inner);
    if (is_awaited)
        PyErr_SetString(PyExc_RuntimeError, "coroutine is being awaited already");
    return inner && !is_awaited ? Py_NewRef(awaited) : NULL;
}

/* What a coroutine's `__await__` gives steps it, and so do we. */
struct outside {
    PyObject_HEAD
    PyObject *coroutine;
};

static PyTypeObject outside_type, *plain_outside_type;

static PyObject *method_await(PyObject *awaited, PyObject *nothing)
{
    (void)nothing;
    PyObject *outside = PyCoro_Type.tp_as_async->am_await(awaited);
    if (outside && Py_IS_TYPE(outside, plain_outside_type) && Py_IS_TYPE(awaited, &coroutines.type))
        Py_SET_TYPE(outside, &outside_type);
    return outside;
}

static PyObject *coroutine_in(PyObject *outside)
{
    return ((struct outside *)outside)->coroutine;
}

static PyObject *outside_next(PyObject *outside)
{
    return coroutine_next(coroutine_in(outside));
}

static PyObject *outside_send(PyObject *outside, PyObject *value)
{
    return method_send(coroutine_in(outside), value);
}

static PyObject *outside_throw(PyObject *outside, PyObject *const *arguments, Py_ssize_t count)
{
    return method_throw(coroutine_in(outside), arguments, count);
}

static PyObject *outside_close(PyObject *outside, PyObject *nothing)
{
    return method_close(coroutine_in(outside), nothing);
}

static void outside_dealloc(PyObject *outside)
{
    Py_SET_TYPE(outside, plain_outside_type);
    plain_outside_type->tp_dealloc(outside);
}

static PyMethodDef outside_methods[] = {
    {"send", outside_send, METH_O, NULL},
    {"throw", (PyCFunction)(void *)outside_throw, METH_FASTCALL, NULL},
    {"close", outside_close, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static PyMethodDef coroutine_methods[] = {
    {"__await__", method_await, METH_NOARGS | METH_COEXIST, NULL},
    {"send", method_send, METH_O, NULL},
    {"throw", (PyCFunction)(void *)method_throw, METH_FASTCALL, NULL},
    {"close", method_close, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static void step_finalise(PyObject *awaited)
{
    struct sort *sort = sort_of(awaited);
    let_go(awaited, sort);
    if (sort->plain->tp_finalize)
        sort->plain->tp_finalize(awaited);
}

static void step_dealloc(PyObject *awaited)
{
    struct sort *sort = sort_of(awaited);
    let_go(awaited, sort);
    sort->plain->tp_dealloc(awaited);
}

/* --- asynchronous generators: each item is awaited */

static void await_becomes(PyObject *awaited, const struct await *like, struct sort *sort)
{
    struct await copy = *like, *await = Py_IS_TYPE(awaited, sort->plain) ? await_add(awaited) : NULL;
    if (!await)
        return;
    *await = copy;
    await->awaited = awaited;
    if (await->scope)
        ++*those_of_scope(await->scope);
    Py_XINCREF(await->told);
    Py_XINCREF(await->scope);
    Py_SET_TYPE(awaited, &sort->type);
}

static PyObject *item_of(PyObject *generator, PyObject *item)
{
    const struct await *await = await_find(generator);
    if (item && await)
        await_becomes(item, await, Py_IS_TYPE(item, sendings.plain) ? &sendings : &throwings);
    return item;
}

/* As if of its own type, which what makes an item asks for. */
#define ITEM(generator, call) \
    struct sort *sort = sort_of(generator); \
    Py_SET_TYPE(generator, sort->plain); \
    PyObject *item = call; \
    Py_SET_TYPE(generator, &sort->type); \
    return item_of(generator, item);

static PyObject *generator_next(PyObject *generator)
{
    ITEM(generator, PyAsyncGen_Type.tp_as_async->am_anext(generator))
}

static PyObject *method_asend(PyObject *generator, PyObject *value)
{
    ITEM(generator, sort->send(generator, value))
}

static PyObject *method_aclose(PyObject *generator, PyObject *nothing)
{
    ITEM(generator, sort->close(generator, nothing))
}

static PyMethodDef generator_methods[] = {
    {"asend", method_asend, METH_O, NULL},
    {"aclose", method_aclose, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};

/* --- at the beginning */

static PyMethodDef *method_called(PyTypeObject *type, const char *name)
{
    for (PyMethodDef *method = type->tp_methods; method && method->ml_name; method++)
        if (strcmp(method->ml_name, name) == 0)
            return method;
    return NULL;
}

static PyCFunction method_of(PyTypeObject *type, const char *name, int flags)
{
    PyMethodDef *method = method_called(type, name);
    return method && method->ml_flags == flags ? method->ml_meth : NULL;
}

/* A type under the plain one, alike in everything but what it has been given already. */
static int type_begin(PyTypeObject *type, PyTypeObject *plain, PyMethodDef *methods)
{
    Py_SET_REFCNT(type, 1);
    type->tp_name = plain->tp_name;
    type->tp_base = plain;
    type->tp_basicsize = plain->tp_basicsize;
    type->tp_itemsize = plain->tp_itemsize;
    type->tp_flags = plain->tp_flags & (Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC);
    type->tp_traverse = plain->tp_traverse;
    type->tp_clear = plain->tp_clear;
    type->tp_weaklistoffset = plain->tp_weaklistoffset;
    type->tp_methods = methods;
    if (PyType_Ready(type))
        return -1;
    PyDict_DelItemString(type->tp_dict, "__doc__");
    PyErr_Clear();
    return 0;
}

static int sort_begin(struct sort *sort, PyTypeObject *plain, PyMethodDef *methods)
{
    sort->plain = plain;
    sort->type.tp_dealloc = step_dealloc;
    sort->type.tp_finalize = step_finalise;
    return type_begin(&sort->type, plain, methods);
}

static int steps_begin(struct sort *sort, PyTypeObject *plain, PyMethodDef *methods)
{
    sort->send = method_of(plain, "send", METH_O);
    sort->close = method_of(plain, "close", METH_NOARGS);
    sort->throw = (fast_function)(void *)method_of(plain, "throw", METH_FASTCALL);
    return sort->send && sort->close && sort->throw ? sort_begin(sort, plain, methods) : -1;
}

static PyAsyncMethods coroutine_async = {.am_await = coroutine_await, .am_send = step_send};

static PyAsyncMethods generator_async = {.am_anext = generator_next};

/* What was made only to be looked at is closed, lest it be warned of. */
static void never_awaited(PyObject *item)
{
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    PyObject *closed = item ? PyObject_CallMethod(item, "close", NULL) : NULL;
    Py_XDECREF(closed);
    Py_XDECREF(item);
    PyErr_Clear();
    PyErr_Restore(type, value, traceback);
}

static int generators_begin(PyObject *generator)
{
    PyObject *sending = PyObject_CallMethod(generator, "__anext__", NULL);
    PyObject *throwing = sending ? PyObject_CallMethod(generator, "aclose", NULL) : NULL;
    generators.send = method_of(&PyAsyncGen_Type, "asend", METH_O);
    generators.close = method_of(&PyAsyncGen_Type, "aclose", METH_NOARGS);
    generator_async.am_aiter = PyAsyncGen_Type.tp_as_async->am_aiter;
    generators.type.tp_as_async = &generator_async;
    sendings.type.tp_iternext = throwings.type.tp_iternext = step_next;
    int failed = !throwing || !generators.send || !generators.close ||
                 steps_begin(&sendings, Py_TYPE(sending), step_methods) ||
                 steps_begin(&throwings, Py_TYPE(throwing), step_methods) ||
                 sort_begin(&generators, &PyAsyncGen_Type, generator_methods);
    never_awaited(sending);
    never_awaited(throwing);
    return failed ? -1 : 0;
}

static int coroutines_begin(PyObject *coroutine)
{
    PyObject *outside = PyCoro_Type.tp_as_async->am_await(coroutine);
    if (!outside)
        return -1;
    plain_outside_type = Py_TYPE(outside);
    outside_type.tp_iternext = outside_next;
    outside_type.tp_dealloc = outside_dealloc;
    name_of_awaited = PyUnicode_InternFromString("cr_await");
    coroutines.type.tp_as_async = &coroutine_async;
    coroutines.type.tp_iternext = coroutine_next;
    int failed = !name_of_awaited || type_begin(&outside_type, plain_outside_type, outside_methods) ||
                 steps_begin(&coroutines, &PyCoro_Type, coroutine_methods) ||
                 PyDict_DelItemString(coroutines.type.tp_dict, "__next__");
    never_awaited(outside);
    return failed ? -1 : 0;
}

/* The types that have no names are learned of a coroutine and an asynchronous generator, neither begun. */
static int awaits_begin(PyObject *coroutine, PyObject *generator)
{
    if (coroutines.plain)
        return 0;
    if (generators_begin(generator) == 0 && coroutines_begin(coroutine) == 0)
        return 0;
    coroutines.plain = NULL;
    return -1;
}

/* The steps of a coroutine that runs are seen from the next one on. */
static void see_steps(PyObject *coroutine)
{
    if (coroutines.plain && Py_IS_TYPE(coroutine, coroutines.plain))
        Py_SET_TYPE(coroutine, &coroutines.type);
}

/* What ASGI hands on of a request, the same object in all that serves it: a new reference, or NULL. */
static PyObject *scope_of(const struct slot *slot, PyObject *told)
{
    bool is_itself = told && slot->detail == DETAIL_served && !slot->attributes;
    PyObject *scope = is_itself ? Py_NewRef(told) : told ? attribute_at(told, way_to_scope) : NULL;
    if (scope && !PyDict_CheckExact(scope))
        Py_CLEAR(scope);
    return scope;
}

/* The call made something that is to be awaited: that is what is timed, and the call itself is no event. */
static __attribute__((noinline)) bool becomes_await(struct call *call, PyObject *result, struct sort *sort)
{
    struct span *span = &call->span;
    struct await like = {.slot = call->slot,
                         .owner = call->owner,
                         .intrinsic = span->intrinsic,
                         .stack = span->stack,
                         .detail = span->detail};
    if (!coroutines.plain || !span->thread || !span_open(span))
        return false;
    if (sort == &coroutines && ((PyCoroObject *)result)->cr_frame_state != FRAME_CREATED)
        return false;
    if (call->slot->moves == MOVES_argument)
        like.bytes = bytes_of(call, NULL);
    if (has_route(call->slot)) {
        like.told = subject_of(call);
        like.scope = scope_of(call->slot, like.told);
    }
    await_becomes(result, &like, sort);
    Py_XDECREF(like.scope);
    if (!await_find(result))
        return false;
    if (is_collecting())
        collect_place(span);
    span->thread->record->fields.made--;
    close_call(span->thread->record, span->index);
    return true;
}

/* The end of a call of what may be asynchronous. */
static inline void shim_end_or_await(struct call *call, PyObject *result)
{
    PyTypeObject *type = result ? Py_TYPE(result) : NULL;
    if (UNLIKELY(type == &PyCoro_Type) && becomes_await(call, result, &coroutines))
        return;
    if (UNLIKELY(type == &PyAsyncGen_Type) && becomes_await(call, result, &generators))
        return;
    shim_end(call, result, result == NULL);
}
