#include "hooks/hot_path.h"

#include "hooks/forked_exec.h"
#include "hooks/idle_descriptors.h"

/* The call begins, on a thread that is recorded. */
static inline bool begin_recorded(struct call *call, struct thread *thread, PyThreadState *state)
{
    const struct slot *slot = call->slot;
    if (UNLIKELY(filter_is_on() | chosen.one_in | slot_lowered(slot) | recorder.dialogue))
        return begin_checked(call, thread, state);
    if (!slot->traffic && slot->choice && passes_through(call, thread))
        return false;
    if (UNLIKELY(slot->effect >= EFFECT_serve))
        return begin_serving(call, thread, state);
    uint32_t added = slot->traffic ? describe_traffic(call, thread) : describe_other(call, thread);
    return begin_timed(call, thread, state, slot->intrinsic + added);
}

bool shim_begin(struct call *call, const struct slot *slot, PyObject *owner, PyObject *const *arguments, Py_ssize_t count,
                PyObject *names)
{
    if (UNLIKELY(filter_is_on()) && is_left_out_behind(slot, arguments, count))
        return false;
    PyThreadState *state = recorded_state();
    if (UNLIKELY(!state))
        return begin_elsewhere(call, slot, owner, arguments, count);
    struct thread *thread = recorded_thread(state);
    if (UNLIKELY(!thread || thread->quiet))
        return false;
    if (UNLIKELY(thread->marked))
        marks_settle(thread);
    call->slot = slot;
    call->owner = owner;
    call->arguments = arguments;
    call->count = count;
    call->names = names;
    call->terminal = 0;
    return begin_recorded(call, thread, state);
}

static uint32_t late_detail_of(struct thread *thread, const struct call *call, PyObject *result)
{
    thread->describing++;
    uint32_t number = late_detail(call, result);
    thread->describing--;
    return number;
}

/* What is known about the call only now. */
static inline void describe_ended(struct call *call, PyObject *result)
{
    struct span *span = &call->span;
    const struct slot *slot = call->slot;
    if (UNLIKELY(slot->choice == CHOICE_poll || slot->choice == CHOICE_select))
        span->intrinsic = number_of_wait(call, result);
    if (UNLIKELY(span->wall_ns >= recorder.long_ns))
        look_at_long_call(span);
    if (UNLIKELY(slot->request))
        describe_request(call);
    if (!span->detail && slot->late)
        span->detail = late_detail_of(span->thread, call, result);
    if (UNLIKELY(span->thread->gatherings) && (is_statement(slot->detail) || slot->moves == MOVES_cursor))
        rows_begin(span->thread, call->owner, result);
    if (UNLIKELY(span->thread->in_loop || span->thread->greenlet))
        span->task = task_of_thread(span->thread);
}

/* The call has ended, and the clocks are read: its event, unless it was no wait or is added to another's. */
static inline void end_recorded(struct call *call, PyObject *result, uint64_t bytes, bool failed)
{
    struct span *span = &call->span;
    const struct slot *slot = call->slot;
    if (slot->waits && is_no_event(call, bytes, failed))
        return;
    if (is_inside_passed_over(span)) {
        name_request(call);
        name_request_around(span, span->detail);
        span_forget(span);
        return;
    }
    uint32_t error = UNLIKELY(failed) ? error_here(span->begin.wall_ns) : 0;
    describe_ended(call, result);
    record_collected(span, bytes, error, slot->real, true);
    if (slot->waits == WAITS_rows)
        rows_recorded(call->owner, span, bytes);
}

void shim_end(struct call *call, PyObject *result, bool failed)
{
    if (UNLIKELY(call->slot->effect >= EFFECT_fork_exec && call->slot->effect <= EFFECT_exec))
        forked_exec_over(call);
    if (UNLIKELY(!call->span.thread)) {
        end_untimed(call, result, failed);
        return;
    }
    if (UNLIKELY(!span_stop(&call->span)))
        return;
    failed = UNLIKELY(failed) && !is_end_of_rows(call);
    uint64_t bytes = failed ? 0 : bytes_of(call, result);
    if (LIKELY(!failed))
        take_effect(call, result, bytes);
    else if (is_always_timed(call->slot))
        start_failed(call);
    end_recorded(call, result, bytes, failed);
}
