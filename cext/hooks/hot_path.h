/* What every shim does before and after the real call: everything that a recorded call passes through, except the
   recorder (core/recorder.h) and call sites (cpython/sites.h). Rare work is in other C files. The shims themselves are in
   hooks/bodies.c. */
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdbool.h>
#include <stdint.h>

#include "collectors/collecting.h"
#include "core/filter.h"
#include "core/recorder.h"
#include "core/transaction_sampling.h"
#include "cpython/sites.h"
#include "cpython/tasks.h"
#include "hooks/call.h"
#include "hooks/call_detail.h"
#include "hooks/call_effects.h"
#include "hooks/call_kind.h"
#include "hooks/call_result.h"
#include "hooks/callers.h"
#include "hooks/checked_begin.h"
#include "hooks/child_processes.h"
#include "hooks/fetches.h"
#include "hooks/object_descriptor.h"
#include "hooks/open_calls.h"
#include "hooks/other_interpreters.h"
#include "hooks/serving.h"
#include "hooks/shim.h"
#include "hooks/statement_detail.h"
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
    if (UNLIKELY(!thread && recorder_is_on()))
        recorder_lose();
    return thread;
}

static inline bool is_network(const struct descriptor *known)
{
    return known && known->kind == KIND_net;
}

/* Whether it is an inner call of something recorded as a whole, or not recorded by itself. */
static inline bool passes_through(const struct call *call, const struct thread *thread)
{
    if (call->slot->choice == CHOICE_outermost)
        return inside(thread, KIND_db);
    if (call->slot->choice == CHOICE_deliveries)
        return !awaits_deliveries(call, thread);
    return call->slot->choice == CHOICE_connection && takes_requests(call);
}

/* The detail of a call that reads or writes: what the descriptor refers to. Returns what to add to the number of the
   intrinsic, as does the next function. */
static inline uint32_t describe_traffic(struct call *call, const struct thread *thread)
{
    call->descriptor = descriptor_of(subject_of(call));
    look_behind(call);
    call->span.detail = call->known ? call->known->name : 0;
    return kind_of_traffic(call->slot, call->known, thread);
}

/* Whether the stack says of which kind it is. */
static inline bool is_by_stack(const struct slot *slot)
{
    return slot->choice == CHOICE_queue || slot->choice == CHOICE_stock;
}

/* What any other call is about. What the call is about to change is changed. */
static inline uint32_t describe_other(struct call *call, const struct thread *thread)
{
    const struct slot *slot = call->slot;
    if (slot->choice | slot->effect)
        call->descriptor = descriptor_of_call(call);
    call->span.detail = slot->detail ? detail_of(call) : 0;
    if (UNLIKELY(is_by_stack(slot)))
        call->span.stack = stack_here(running_state());
    uint32_t added = slot->choice ? chosen_kind(call, thread) : 0;
    if (slot->effect)
        change_before(call);
    return added;
}

/* The clocks start, at the last moment before the real call. */
static inline bool begin_timed(struct call *call, struct thread *thread, PyThreadState *state, uint32_t intrinsic)
{
    uint32_t stack = UNLIKELY(is_by_stack(call->slot)) ? call->span.stack : stack_here(state);
    return span_begin(&call->span, thread, chosen_number(intrinsic, thread), stack, call->span.detail);
}

/* The call's changes to descriptors and children are known from here on; what it showed is kept. */
static inline void take_effect(struct call *call, PyObject *result, uint64_t bytes)
{
    const struct slot *slot = call->slot;
    if (slot->effect && !(slot->traffic && !is_network(call->known)))
        change_after(call, result, bytes);
    if (UNLIKELY(call->terminal) && result)
        terminal_end(call, result);
}

/* False: pass through, there is nothing to end. */
bool shim_begin(struct call *call, const struct slot *slot, PyObject *owner, PyObject *const *arguments, Py_ssize_t count,
                PyObject *names);

void shim_end(struct call *call, PyObject *result, bool failed);

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

/* For a Python function, the object of the method, if it is one, is its first argument. */
static inline bool begin_vector(struct call *call, const struct slot *slot, PyObject *function,
                                PyObject *const *arguments, size_t flags, PyObject *names)
{
    Py_ssize_t count = PyVectorcall_NARGS(flags);
    bool method = slot->shape == SHAPE_METHOD && count > 0;
    return shim_begin(call, slot, method ? *arguments : function, arguments + method, count - method, names);
}
