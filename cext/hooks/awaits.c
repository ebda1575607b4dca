#include "hooks/awaits.h"

#include "collectors/collected_places.h"
#include "collectors/collecting.h"
#include "core/recorder.h"
#include "cpython/attributes.h"
#include "cpython/frame.h"
#include "hooks/attribute_names.h"
#include "hooks/await_table.h"
#include "hooks/awaited_coroutines.h"
#include "hooks/awaited_items.h"
#include "hooks/call_detail.h"
#include "hooks/call_result.h"
#include "hooks/slot.h"
#include "hooks/trace_headers.h"

int awaits_begin(PyObject *coroutine, PyObject *generator)
{
    if (coroutines.plain)
        return 0;
    if (generators_begin(generator) == 0 && coroutines_begin(coroutine) == 0)
        return 0;
    coroutines.plain = NULL;
    return -1;
}

void see_steps(PyObject *coroutine)
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

/* In free-threaded CPython: what made it took no time, and is no event. */
static bool is_left_out_as_await(const struct span *span)
{
    static uint32_t warned;
    if (!span->thread || !span_open(span))
        return false;
    recorder_warn_once(&warned, "awaits are not yet recorded in a free-threaded interpreter");
    span_forget(span);
    return true;
}

/* It is not recorded; its steps only tell that an answer is awaited. */
static bool becomes_answer(const struct call *call, PyObject *result, struct sort *sort)
{
    struct await like = {.slot = call->slot};
    if (IS_FREE_THREADED || !coroutines.plain || sort != &coroutines || !coroutine_has_not_begun(result))
        return false;
    await_becomes(result, &like, sort);
    return true;
}

bool becomes_await(struct call *call, PyObject *result, struct sort *sort)
{
    if (call->slot->effect == EFFECT_answer)
        return becomes_answer(call, result, sort);
    struct span *span = &call->span;
    struct await like = {.slot = call->slot,
                         .owner = call->owner,
                         .intrinsic = span->intrinsic,
                         .stack = span->stack,
                         .detail = span->detail};
    if (IS_FREE_THREADED)
        return is_left_out_as_await(span);
    if (!coroutines.plain || !span->thread || !span_open(span))
        return false;
    if (sort == &coroutines && !coroutine_has_not_begun(result))
        return false;
    like.greenlet = span->thread->greenlet;
    if (call->slot->moves == MOVES_argument)
        like.bytes = bytes_of(call, NULL);
    if (call->slot->request & REQUEST_traced)
        like.has_context = read_context(call, &like.context);
    if (like.has_context)
        like.state = read_state(call);
    if (call->slot->request & REQUEST_named) {
        like.told = subject_of(call);
        like.scope = scope_of(call->slot, like.told);
    }
    await_becomes(result, &like, sort);
    Py_XDECREF(like.scope);
    Py_XDECREF(like.state);
    if (!await_find(result))
        return false;
    if (is_collecting())
        collect_place(span);
    span->thread->record->fields.made--;
    close_call(span->thread->record, span->index);
    return true;
}
