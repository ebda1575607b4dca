#include "hooks/shim.h"

#include "cpython/sites.h"
#include "cpython/tasks.h"
#include "cpython/thread_names.h"
#include "hooks/active_spans.h"
#include "hooks/carried_transactions.h"
#include "hooks/descriptors.h"
#include "hooks/fetches.h"
#include "hooks/filtering.h"
#include "hooks/hot_path.h"
#include "hooks/lock_holders.h"
#include "hooks/open_calls.h"
#include "hooks/serving.h"

/* Changes while nothing was watched are unknown. */
static void forget_what_may_have_changed(void)
{
    forget_descriptors();
    __atomic_store_n(&holders_unknown, true, __ATOMIC_RELAXED);
}

/* An event loop may already run on the thread, and announced itself before the thread was recorded. */
static void meet_thread(void)
{
    see_first_time();
    if (recorded_state())
        loop_hooks_are_set();
}

void shims_begin(void)
{
    other_interpreters_begin();
    recorder.pause_ended = forget_what_may_have_changed;
    recorder.filter_changed = slots_watch;
    recorder.thread_met = meet_thread;
}

bool is_end_of_rows(const struct call *call)
{
    return call->slot->moves == MOVES_row &&
           (PyErr_ExceptionMatches(PyExc_StopIteration) || PyErr_ExceptionMatches(PyExc_StopAsyncIteration));
}

void end_untimed(struct call *call, PyObject *result, bool failed)
{
    if (call->slot->effect == EFFECT_serve)
        end_serving(call, failed);
    else if (call->slot->effect == EFFECT_arrive)
        request_arrived(call, result);
    else if (call->slot->effect == EFFECT_route)
        tell_route(call);
    else if (call->slot->effect == EFFECT_span)
        note_active_spans(current_thread);
    else if (call->slot->effect == EFFECT_carry && !failed)
        carry_transaction(call, result);
    else if (!failed || is_end_of_rows(call))
        take_effect(call, result, bytes_of(call, result));
}

/* It did not wait long enough to be recorded, and nothing inside of it did. */
static bool did_not_wait(const struct slot *slot, const struct span *span)
{
    uint64_t waited_ns = slot->waits == WAITS_off_cpu ? span->wall_ns - span->cpu_ns : span->wall_ns;
    return waited_ns < recorder.wait_above_ns && span->thread->record->open[span->index].inner_wall_ns == 0;
}

bool is_no_event(const struct call *call, uint64_t bytes, bool failed)
{
    const struct span *span = &call->span;
    if (call->slot->waits == WAITS_rows)
        return !failed && rows_gather(call->owner, span, bytes);
    if (!did_not_wait(call->slot, span))
        return false;
    span_pass(span);
    return true;
}

void look_at_long_call(struct span *span)
{
    if (span->wall_ns >= recorder.stack_above_ns)
        span->stack = whole_stack_here();
    if (span->wall_ns >= recorder.trigger_above_ns && !is_idle_number(span->intrinsic))
        recorder_trigger_once(span->thread, span->begin.wall_ns);
}

PyObject *given(PyObject *result)
{
    return result;
}

PyObject *do_nothing(PyObject *self, PyObject *argument)
{
    (void)self;
    return argument;
}
