#include "hooks/serving.h"

#include "collectors/collecting.h"
#include "core/fields.h"
#include "core/filter.h"
#include "kinds.h"
#include "core/trace_contexts.h"
#include "core/transaction_sampling.h"
#include "core/visible.h"
#include "cpython/attributes.h"
#include "cpython/sites.h"
#include "hooks/attribute_names.h"
#include "hooks/call_detail.h"
#include "hooks/call_result.h"
#include "hooks/carried_transactions.h"
#include "hooks/checked_begin.h"
#include "hooks/filtering.h"
#include "hooks/hot_path.h"
#include "hooks/open_calls.h"
#include "hooks/shim.h"
#include "hooks/slot.h"
#include "hooks/trace_headers.h"

bool takes_requests(const struct call *call)
{
    PyObject *ways = call->slot->attributes, *subject = subject_of(call);
    PyObject *made = subject && ways ? attribute_at(subject, PyTuple_GET_ITEM(ways, 0)) : NULL;
    PyObject *taking = made && PyType_Check(made) ? entry_of_type((PyTypeObject *)made, name_of_taking) : NULL;
    bool takes = !made || !PyType_Check(made) || taking;
    Py_XDECREF(taking);
    Py_XDECREF(made);
    return takes;
}

bool begin_serving(struct call *call, struct thread *thread, PyThreadState *state)
{
    struct thread_record *record = thread->record;
    uint32_t depth = record->fields.depth;
    struct span span;
    call->span.thread = NULL;
    if (call->slot->effect == EFFECT_continue)
        return begin_continuing(call, thread, state);
    if (call->slot->effect >= EFFECT_route)
        return true;
    if (call->slot->effect == EFFECT_serve) {
        if (!is_timed(call->slot, call->slot->intrinsic))
            return begin_untimed(call, thread, call->slot->intrinsic) && false;
        if (UNLIKELY(filter_is_on()) && !transaction_passes(call->slot, thread, state))
            return false;
        call->span.intrinsic = thread->serving;
        call->span.index = depth;
        thread->serving = call->slot->intrinsic;
        return true;
    }
    bool is_there = depth && is_number_or_further(record->open[depth - 1].intrinsic, thread->serving);
    if (thread->serving && !is_there)
        span_begin(&span, thread, chosen_number(thread->serving, thread), stack_here(state), 0);
    return call->slot->request & REQUEST_traced;
}

/* Its headers were read, if it could be understood. */
void request_arrived(const struct call *call, PyObject *result)
{
    struct thread *thread = current_thread;
    struct span span;
    if (result == Py_True && thread_records(thread) && find_open(&span, thread, thread->serving, any_detail, 0))
        keep_context(call, &span);
}

uint32_t marking;

void tell_route(const struct call *call)
{
    struct thread *thread = current_thread;
    PyObject *subject = subject_of(call);
    struct raised raised = raised_keep();
    uint32_t number = subject && thread_records(thread) ? detail_of_route(call->slot, subject) : 0;
    raised_restore(raised);
    for (uint32_t index = number ? thread->record->fields.depth : 0; index-- > 0;)
        if (is_number_of(thread->record->open[index].intrinsic, KIND_logic) &&
            !is_number_or_further(thread->record->open[index].intrinsic, marking)) {
            thread->record->open[index].detail = number;
            return;
        }
}

static void name_by_route(struct call *call)
{
    PyObject *subject = subject_of(call);
    struct raised raised = raised_keep();
    uint32_t number = subject ? detail_of_route(call->slot, subject) : 0;
    raised_restore(raised);
    call->span.detail = number ? number : call->span.thread->record->open[call->span.index].detail;
}

void name_request_around(const struct span *inside, uint32_t detail)
{
    struct open_call *open = inside->thread->record->open;
    uint32_t index = detail ? inside->index : 0;
    while (index-- > 0)
        if (open[index].call && chosen_further(open[index].intrinsic)) {
            bool is_marked = is_number_or_further(open[index].intrinsic, marking);
            open[index].detail = is_marked ? open[index].detail : detail;
            return;
        }
}

void name_request(struct call *call)
{
    struct span *span = &call->span;
    uint32_t named = span->thread->record->open[span->index].detail;
    if (UNLIKELY(is_number_passed_over(span->intrinsic)) && named != span->detail)
        span->detail = named;
    else if (call->slot->request & REQUEST_named)
        name_by_route(call);
}

void describe_request(struct call *call)
{
    const struct span *span = &call->span;
    name_request(call);
    if (call->slot->effect == EFFECT_continue)
        end_continuing(call);
    if (call->slot->request & REQUEST_traced)
        trace_context_end(span->thread, span->call, span->call);
}

/* Keep nothing of a request that could not be understood: the data there belongs to the one before. */
static uint32_t detail_of_served(const struct call *call)
{
    PyObject *subject = subject_of(call), *ways = call->slot->attributes;
    PyObject *method = subject && ways ? attribute_at(subject, PyTuple_GET_ITEM(ways, 0)) : NULL;
    uint32_t number = method && PyUnicode_Check(method) ? detail_of(call) : 0;
    Py_XDECREF(method);
    return number;
}

void end_serving(struct call *call, bool failed)
{
    struct thread *thread = current_thread;
    struct span span;
    if (!thread_records(thread))
        return;
    uint32_t lowest = call->span.index;
    thread->serving = call->span.intrinsic;
    if (!find_open(&span, thread, call->slot->intrinsic, any_detail, lowest) || !span_stop(&span))
        return;
    if (is_inside_passed_over(&span)) {
        name_request_around(&span, span.detail);
        span_forget(&span);
        return;
    }
    uint32_t error = failed ? error_here(span.begin.wall_ns) : 0;
    struct raised raised = raised_keep();
    span.detail = span.detail ? span.detail : detail_of_served(call);
    trace_context_end(thread, span.call, span.call);
    raised_restore(raised);
    if (span.wall_ns >= recorder.long_ns)
        look_at_long_call(&span);
    record_collected(&span, 0, error, NULL, false);
}
