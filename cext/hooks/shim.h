/* What every shim does before and after the real call; the shims themselves are in timing/bodies.pxi. */
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

static void marks_settle(struct thread *thread);

/* What changed while nothing was looked at is not known. */
static void forget_what_may_have_changed(void)
{
    forget_descriptors();
    holders_unknown = true;
}

static void shims_begin(void)
{
    recorder.pause_ended = forget_what_may_have_changed;
    recorder.filter_changed = slots_watch;
    recorder.thread_named = see_first_time;
}

/* The calling thread, where its calls are recorded now; a call that cannot be is counted. */
static inline struct thread *recorded_thread(PyThreadState *state)
{
    if (UNLIKELY(!state))
        return NULL;
    if (recorder_paused())
        return NULL;
    struct thread *thread = recording();
    if (UNLIKELY(!thread && recorder.on))
        recorder_lose();
    return thread;
}

static inline bool is_timed(const struct slot *slot, uint32_t intrinsic)
{
    return slot->levels[intrinsic - slot->intrinsic] == LEVEL_time || is_always_timed(slot);
}

/* Nothing but the slot tells of which kind the call is, and nobody needs to know of it. */
static inline bool is_simple(const struct slot *slot)
{
    return !slot->traffic && !slot->choice && !slot->effect && !slot->asks && slot->moves != MOVES_frame;
}

/* A call that is not timed may still change what is known of descriptors. */
static __attribute__((noinline)) bool begin_untimed(struct call *call, struct thread *thread, uint32_t intrinsic)
{
    if (call->slot->levels[intrinsic - call->slot->intrinsic] == LEVEL_count)
        recorder_count(thread, intrinsic);
    call->span.thread = NULL;
    return call->slot->effect != EFFECT_none || call->terminal;
}

/* Nor does a call that the filter leaves out, but for what the terminal shows by it. */
static inline bool begin_left_out(struct call *call)
{
    call->span.thread = NULL;
    return call->slot->effect != EFFECT_none || call->terminal;
}

static inline bool is_network(const struct descriptor *known)
{
    return known && known->kind == KIND_net;
}

static inline bool is_screen(const struct descriptor *known)
{
    return known && known->kind == KIND_screen;
}

/* Do a server's handlers take the requests of a connection one by one? Those that are not plainly of a class may. */
static bool takes_requests(const struct call *call)
{
    PyObject *ways = call->slot->attributes, *subject = subject_of(call);
    PyObject *made = subject && ways ? attribute_at(subject, PyTuple_GET_ITEM(ways, 0)) : NULL;
    bool takes = !made || !PyType_Check(made) || _PyType_Lookup((PyTypeObject *)made, name_of_taking);
    Py_XDECREF(made);
    return takes;
}

/* --- requests that a call waits for before it answers them

   Such a call is none until the request is there: then an entry in the table of calls in progress begins, of the call
   that is to end it. The waiting before it is inside of nothing. */

/* Of a call that waits for a request: that it does. Of one that has it: the call around it begins. Of one that finds its
   route: nothing yet. */
static __attribute__((noinline)) bool begin_serving(struct call *call, struct thread *thread, PyThreadState *state)
{
    struct thread_record *record = thread->record;
    uint32_t depth = record->fields.depth;
    struct span span;
    call->span.thread = NULL;
    if (call->slot->effect == EFFECT_route)
        return true;
    if (call->slot->effect == EFFECT_serve) {
        if (!is_timed(call->slot, call->slot->intrinsic))
            return begin_untimed(call, thread, call->slot->intrinsic) && false;
        if (UNLIKELY(filter.on) && !transaction_passes(call->slot, thread, state))
            return false;
        call->span.intrinsic = thread->serving;
        call->span.index = depth;
        thread->serving = call->slot->intrinsic;
        return true;
    }
    bool is_there = depth && is_number_or_further(record->open[depth - 1].intrinsic, thread->serving);
    if (thread->serving && !is_there)
        span_begin(&span, thread, chosen_number(thread->serving, thread), stack_here(state), 0);
    return false;
}

/* Does what lies behind the number of a descriptor tell alone that the filter leaves the call out? */
static inline bool is_left_out_behind(const struct slot *slot, PyObject *const *arguments, Py_ssize_t count)
{
    if (!slot->traffic || slot->subject >= count || !PyLong_CheckExact(arguments[slot->subject]))
        return false;
    int number = value_of_digit(arguments[slot->subject]);
    if (number < 0 || number >= DESCRIPTORS_KNOWN)
        return false;
    const struct descriptor *known = &descriptors[number];
    bool is_plain = known->known && (known->kind == KIND_file || (known->kind == KIND_screen && !recorder.dialogue));
    return is_plain && is_left_out(slot->intrinsic + slot->kinds[known->kind]);
}

/* False: pass through, there is nothing to end. */
static inline bool shim_begin(struct call *call, const struct slot *slot, PyObject *owner,
                              PyObject *const *arguments, Py_ssize_t count, PyObject *names)
{
    if (UNLIKELY(filter.on) && is_left_out_behind(slot, arguments, count))
        return false;
    PyThreadState *state = recorded_state();
    struct thread *thread = recorded_thread(state);
    if (UNLIKELY(!thread || thread->quiet))
        return false;
    uint32_t intrinsic = slot->intrinsic, detail = 0;
    if (UNLIKELY(thread->marked))
        marks_settle(thread);
    call->slot = slot;
    call->terminal = 0;
    if (UNLIKELY(slot->lowered) && is_simple(slot) && !is_timed(slot, intrinsic))
        return begin_untimed(call, thread, intrinsic);
    bool passes = true, looks = UNLIKELY(filter.on | chosen.one_in);
    if (looks) {
        passes = passes_early(slot, intrinsic, is_simple(slot), thread, state);
        if (!passes && slot->effect == EFFECT_none && !is_always_timed(slot) && !keeps_dialogue(slot))
            return begin_left_out(call);
    }
    call->owner = owner;
    call->arguments = arguments;
    call->count = count;
    call->names = names;
    if (slot->traffic) {
        call->known = descriptor_known(call->descriptor = descriptor_of(subject_of(call)));
        intrinsic += kind_of_traffic(slot, call->known, thread);
        bool left_out = looks && (!passes || is_left_out(intrinsic)) && !is_network(call->known);
        if (left_out && !(keeps_dialogue(slot) && is_screen(call->known)))
            return begin_left_out(call) && false;
        detail = call->known ? call->known->name : 0;
    } else {
        if (slot->choice == CHOICE_outermost && inside(thread, KIND_db))
            return false;
        if (slot->choice == CHOICE_connection && takes_requests(call))
            return false;
        if (slot->effect >= EFFECT_serve)
            return begin_serving(call, thread, state);
        if (slot->choice | slot->effect)
            call->descriptor = descriptor_of_call(call);
        if (slot->detail)
            detail = detail_of(call);
        call->span.detail = detail;
        if (slot->choice)
            intrinsic += chosen_kind(call, thread);
        if (slot->effect)
            change_before(call);
    }
    if (UNLIKELY(recorder.dialogue))
        terminal_begin(call);
    if (UNLIKELY(slot->lowered) && !is_timed(slot, intrinsic))
        return begin_untimed(call, thread, intrinsic);
    if (looks && !is_simple(slot) && !passes_late(slot, intrinsic, passes))
        return begin_left_out(call) && (call->terminal || !slot->traffic || is_network(call->known));
    return span_begin(&call->span, thread, chosen_number(intrinsic, thread), stack_here(state), detail);
}

/* It did not wait long enough to be recorded, and nothing inside of it did. */
static inline bool did_not_wait(const struct slot *slot, const struct span *span)
{
    uint64_t waited_ns = slot->waits == WAITS_off_cpu ? span->wall_ns - span->cpu_ns : span->wall_ns;
    return waited_ns < recorder.wait_above_ns && span->thread->record->open[span->index].inner_wall_ns == 0;
}

/* Is it one of those that are counted where nobody had to wait? */
static inline bool is_wait(const struct slot *slot)
{
    return slot->waits == WAITS_wall || slot->waits == WAITS_off_cpu;
}

/* How a `__next__` in Python says that there are no more. */
static __attribute__((noinline)) bool is_end_of_rows(void)
{
    return PyErr_ExceptionMatches(PyExc_StopIteration) || PyErr_ExceptionMatches(PyExc_StopAsyncIteration);
}

/* Was it no wait, or a fetch that was added to another's event? */
static bool is_no_event(const struct call *call, uint64_t bytes, bool failed)
{
    const struct span *span = &call->span;
    if (call->slot->waits == WAITS_rows)
        return !failed && rows_gather(call->owner, span, bytes);
    if (!did_not_wait(call->slot, span))
        return false;
    span_pass(span);
    return true;
}

/* A call took long enough to look at it more closely. What waits for work may take as long as it likes. */
static __attribute__((noinline)) void look_at_long_call(struct span *span)
{
    if (span->wall_ns >= recorder.stack_above_ns)
        span->stack = whole_stack_here();
    if (span->wall_ns >= recorder.trigger_above_ns && !is_idle_number(span->intrinsic))
        recorder_trigger();
}

static uint32_t marking; /* the intrinsic of transactions that the program marks, whose names are theirs */

/* What the innermost of the calls in progress that are the program's own work is about is known now. */
static __attribute__((noinline)) void tell_route(const struct call *call)
{
    struct thread *thread = current_thread;
    PyObject *type, *value, *traceback, *subject = subject_of(call);
    PyErr_Fetch(&type, &value, &traceback);
    uint32_t number = subject && thread && thread->recording ? detail_of_route(call->slot, subject) : 0;
    PyErr_Restore(type, value, traceback);
    for (uint32_t index = number ? thread->record->fields.depth : 0; index-- > 0;)
        if (is_number_of(thread->record->open[index].intrinsic, KIND_logic) &&
            !is_number_or_further(thread->record->open[index].intrinsic, marking)) {
            thread->record->open[index].detail = number;
            return;
        }
}

/* It is known now what it was. */
static __attribute__((noinline)) void name_by_route(struct call *call)
{
    PyObject *type, *value, *traceback, *subject = subject_of(call);
    PyErr_Fetch(&type, &value, &traceback);
    uint32_t number = subject ? detail_of_route(call->slot, subject) : 0;
    PyErr_Restore(type, value, traceback);
    call->span.detail = number ? number : call->span.thread->record->open[call->span.index].detail;
}

/* Nothing is kept of a request that could not be understood: what stands there is of the one before it. */
static uint32_t detail_of_served(const struct call *call)
{
    PyObject *subject = subject_of(call), *ways = call->slot->attributes;
    PyObject *method = subject && ways ? attribute_at(subject, PyTuple_GET_ITEM(ways, 0)) : NULL;
    uint32_t number = method && PyUnicode_Check(method) ? detail_of(call) : 0;
    Py_XDECREF(method);
    return number;
}

static __attribute__((noinline)) void end_serving(struct call *call, bool failed)
{
    struct thread *thread = current_thread;
    struct span span;
    if (!thread || !thread->recording)
        return;
    uint32_t lowest = call->span.index;
    thread->serving = call->span.intrinsic;
    if (!find_open(&span, thread, call->slot->intrinsic, any_detail, lowest) || !span_stop(&span))
        return;
    if (is_inside_passed_over(&span)) {
        span_forget(&span);
        return;
    }
    uint32_t error = failed ? error_here() : 0;
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    span.detail = detail_of_served(call);
    PyErr_Restore(type, value, traceback);
    if (span.wall_ns >= recorder.long_ns)
        look_at_long_call(&span);
    record_collected(&span, 0, error, NULL, false);
}

static inline void shim_end(struct call *call, PyObject *result, bool failed)
{
    struct span *span = &call->span;
    const struct slot *slot = call->slot;
    bool timed = LIKELY(span->thread);
    if (UNLIKELY(!timed) && slot->effect >= EFFECT_serve) {
        if (slot->effect == EFFECT_serve)
            end_serving(call, failed);
        else
            tell_route(call);
        return;
    }
    if (timed && UNLIKELY(!span_stop(span)))
        return;
    if (UNLIKELY(failed) && slot->moves == MOVES_row && is_end_of_rows())
        failed = false;
    uint64_t bytes = failed ? 0 : bytes_of(call, result);
    bool changes = slot->effect && !failed && !(slot->traffic && !is_network(call->known));
    if (changes)
        change_after(call, result, bytes);
    if (UNLIKELY(call->terminal) && result && !failed)
        terminal_end(call, result);
    if (UNLIKELY(!timed))
        return;
    if (UNLIKELY(failed && slot->effect >= EFFECT_fork))
        start_failed(call);
    if (slot->waits && is_no_event(call, bytes, failed))
        return;
    if (is_inside_passed_over(span)) {
        span_forget(span);
        return;
    }
    uint32_t error = UNLIKELY(failed) ? error_here() : 0;
    if (UNLIKELY(span->wall_ns >= recorder.long_ns))
        look_at_long_call(span);
    if (UNLIKELY(slot->detail == DETAIL_served || slot->route))
        name_by_route(call);
    if (!span->detail && slot->late)
        span->detail = late_detail(call, result);
    if (UNLIKELY(span->thread->gatherings) && (slot->detail == DETAIL_statement || slot->moves == MOVES_cursor))
        rows_begin(span->thread, call->owner, result);
    if (UNLIKELY(span->thread->in_loop || span->thread->greenlet))
        span->task = task_of_thread(span->thread);
    record_collected(span, bytes, error, slot->real, true);
    if (slot->waits == WAITS_rows)
        rows_recorded(call->owner, span, bytes);
}

static inline bool begin_pair(struct call *call, const struct slot *slot, PyObject *owner, PyObject *const *argument)
{
    if (slot->shape == SHAPE_TUPLE)
        return shim_begin(call, slot, owner, items_of(*argument), count_of(*argument), NULL);
    return shim_begin(call, slot, owner, argument, slot->shape == SHAPE_ONE, NULL);
}

static inline bool begin_tuple(struct call *call, const struct slot *slot, PyObject *owner, PyObject *arguments,
                               PyObject *keywords)
{
    return shim_begin(call, slot, owner, items_of(arguments), count_of(arguments), keywords);
}

/* A Python function: the object whose method it is, if it is one, is its first argument. */
static inline bool begin_vector(struct call *call, const struct slot *slot, PyObject *function,
                                PyObject *const *arguments, size_t flags, PyObject *names)
{
    Py_ssize_t count = PyVectorcall_NARGS(flags);
    bool method = slot->shape == SHAPE_METHOD && count > 0;
    return shim_begin(call, slot, method ? *arguments : function, arguments + method, count - method, names);
}

static inline bool is_free(const struct slot *slot, PyObject *lock)
{
    switch ((enum lock)slot->lock) {
    case LOCK_plain:
        return is_free_plain(lock);
    case LOCK_recursive:
        return is_free_recursive(lock);
    default:
        return is_free_semaphore(lock, slot->ask);
    }
}

/* Was `acquire` told not to wait, by its first argument or by name? */
static bool will_not_wait(PyObject *first, PyObject *keywords)
{
    PyObject *blocking = !first && keywords ? PyDict_GetItemWithError(keywords, name_of_blocking) : first;
    return blocking == Py_False || (blocking && PyLong_CheckExact(blocking) && descriptor_of_number(blocking) == 0);
}

/* A lock that is free need not be waited for, and who asks without waiting does not wait: the call is passed through,
   and merely counted. NULL: it is to be timed, or nothing is recorded. */
static inline struct thread *lock_passes(const struct slot *slot, PyObject *lock, PyThreadState *state, PyObject *first,
                                         PyObject *keywords)
{
    if (UNLIKELY(!state || recorder.all_waits) || (!is_free(slot, lock) && !will_not_wait(first, keywords)))
        return NULL;
    return recorder_paused() || is_left_out(slot->intrinsic) ? NULL : recording();
}

static inline bool is_taken(const PyObject *result)
{
    return result && result != Py_False;
}

/* Nobody had to wait. */
static inline void lock_passed(const struct slot *slot, PyObject *lock, PyThreadState *state, struct thread *thread,
                               PyObject *result)
{
    thread->record->fields.passed++;
    if (slot->detail == DETAIL_holder && is_taken(result) && !(slot->lock == LOCK_recursive && is_taken_again(lock)))
        lock_taken(state, lock, thread);
}

/* Somebody waited for it, and may have got it. */
static inline void lock_waited(const struct slot *slot, PyObject *lock, PyThreadState *state, PyObject *result)
{
    struct thread *thread = current_thread;
    if (slot->detail == DETAIL_holder && is_taken(result) && state && thread && thread->recording)
        lock_taken(state, lock, thread);
}

/* A result as it was given, an exception as it is set. */
static PyObject *given(PyObject *result)
{
    return result;
}

/* What calibration calls instead of an intrinsic. */
static PyObject *do_nothing(PyObject *self, PyObject *argument)
{
    (void)self;
    return argument;
}
