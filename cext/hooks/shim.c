#include "hooks/shim.h"

#include "kinds.h"
#include "core/levels.h"
#include "cpython/sites.h"
#include "cpython/thread_names.h"
#include "hooks/descriptors.h"
#include "hooks/fetches.h"
#include "hooks/filtering.h"
#include "hooks/hot_path.h"
#include "hooks/lock_holders.h"
#include "hooks/object_descriptor.h"
#include "hooks/open_calls.h"

/* What changed while nothing was looked at is not known. */
static void forget_what_may_have_changed(void)
{
    forget_descriptors();
    holders_unknown = true;
}

void shims_begin(void)
{
    recorder.pause_ended = forget_what_may_have_changed;
    recorder.filter_changed = slots_watch;
    recorder.thread_named = see_first_time;
}

bool begin_untimed(struct call *call, struct thread *thread, uint32_t intrinsic)
{
    if (call->slot->levels[intrinsic - call->slot->intrinsic] == LEVEL_count)
        recorder_count(thread, intrinsic);
    call->span.thread = NULL;
    return call->slot->effect != EFFECT_none || call->terminal;
}

bool is_left_out_behind(const struct slot *slot, PyObject *const *arguments, Py_ssize_t count)
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

bool is_end_of_rows(void)
{
    return PyErr_ExceptionMatches(PyExc_StopIteration) || PyErr_ExceptionMatches(PyExc_StopAsyncIteration);
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
        recorder_trigger();
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
