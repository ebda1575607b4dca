/* What every shim does before and after the real call: all that a recorded call passes through, but for the recorder
   (core/recorder.h) and the place that it is made from (cpython/sites.h). What is rare is in shim.c. The shims themselves
   are in timing/bodies.pxi. */
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdbool.h>
#include <stdint.h>

#include "collectors/collecting.h"
#include "core/filter.h"
#include "kinds.h"
#include "core/levels.h"
#include "core/recorder.h"
#include "core/transaction_sampling.h"
#include "core/visible.h"
#include "cpython/sites.h"
#include "cpython/tasks.h"
#include "hooks/call.h"
#include "hooks/call_detail.h"
#include "hooks/call_effects.h"
#include "hooks/call_kind.h"
#include "hooks/call_result.h"
#include "hooks/child_processes.h"
#include "hooks/descriptors.h"
#include "hooks/fetches.h"
#include "hooks/filtering.h"
#include "hooks/object_descriptor.h"
#include "hooks/open_calls.h"
#include "hooks/serving.h"
#include "hooks/shim.h"
#include "hooks/slot.h"
#include "hooks/terminal.h"
#include "hooks/transaction_marks.h"

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

/* Nor does a call that the filter leaves out, but for what the terminal shows by it. */
bool begin_left_out(struct call *call);

static inline bool is_network(const struct descriptor *known)
{
    return known && known->kind == KIND_net;
}

static inline bool is_screen(const struct descriptor *known)
{
    return known && known->kind == KIND_screen;
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
