#include "hooks/await_steps.h"

#include "collectors/collecting.h"
#include "core/clock.h"
#include "core/fields.h"
#include "core/recorder.h"
#include "core/trace_contexts.h"
#include "core/transaction_sampling.h"
#include "core/visible.h"
#include "cpython/frame.h"
#include "cpython/sites.h"
#include "cpython/tasks.h"
#include "hooks/active_spans.h"
#include "hooks/await_table.h"
#include "hooks/call_result.h"
#include "hooks/fetches.h"
#include "hooks/hot_path.h"
#include "hooks/open_calls.h"
#include "hooks/shim.h"
#include "hooks/slot.h"
#include "hooks/statement_detail.h"
#include "hooks/transaction_marks.h"

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
    await->has_waited = false;
    if (is_number_of(await->intrinsic, KIND_db) || is_number_of(await->intrinsic, KIND_net))
        answer_begins(&await->answer, thread->number, KIND_net);
    else if (is_number_of(await->intrinsic, KIND_process))
        answer_begins(&await->answer, thread->number, KIND_process);
    if (UNLIKELY(await->scope && !index))
        await_joins(await, thread);
    if (UNLIKELY(await->has_context))
        trace_context_begin(thread, index, await->call, &await->context,
                            await->state ? PyBytes_AS_STRING(await->state) : NULL);
}

/* It may have been made known by an earlier step. */
static void await_answer(struct await *await, const struct thread *thread)
{
    if (!await->answer.by)
        answer_begins(&await->answer, thread->number, KIND_net);
}

/* SQLAlchemy makes in a greenlet what a coroutine outside of it awaits: the program's own frames are around that one. */
static uint32_t stack_of_await(const struct await *await, const struct thread *thread, PyThreadState *state)
{
    if (LIKELY(await->call || await->greenlet == thread->greenlet || !await->stack))
        return await->stack;
    frame *awaiting = frame_innermost(state);
    return awaiting && frame_code(awaiting)->co_flags & CO_COROUTINE ? stack_here(state) : await->stack;
}

void step_begin(struct step *step, PyObject *awaited)
{
    struct await *await = await_find(awaited);
    PyThreadState *state = await ? recorded_state() : NULL;
    struct thread *thread = state && !recorder_paused() ? recording() : NULL;
    step->thread = NULL;
    if (thread && await->slot->effect == EFFECT_answer)
        await_answer(await, thread);
    if (!thread || thread->quiet || await->slot->effect == EFFECT_answer || thread->record->fields.depth >= OPEN_CALLS)
        return;
    if (UNLIKELY(thread->marked))
        marks_settle(thread);
    uint32_t stack = stack_of_await(await, thread, state);
    uint32_t task = await->call ? await->task : task_here(awaited); /* runs anything; the table may have grown */
    struct thread_record *record = thread->record;
    await = await_find(awaited);
    if (!await || !thread_records(thread) || record->fields.depth >= OPEN_CALLS)
        return;
    struct reading now = clock_read(&thread->clock);
    bool is_first = !await->call;
    await->stack = stack;
    if (is_first)
        await_begins(await, thread, now, task);
    *step = (struct step){thread, now, record->fields.depth, await->call, false, awaited, NULL};
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
    if (UNLIKELY(is_first && await->slot->request & REQUEST_traced))
        note_active_spans(thread);
    if (UNLIKELY(thread->marked))
        marks_return(thread, await->call, now);
}

/* The call that the step is of, if it is still in progress here. Another one of the same thread may have grown the table
   meanwhile: it is looked for again. */
static struct await *await_stepped(const struct step *step)
{
    const struct thread *thread = step->thread;
    struct await *await = thread ? await_find(step->awaited) : NULL;
    if (!await || !thread_records(thread) || thread != current_thread)
        return NULL;
    const struct thread_record *record = thread->record;
    bool is_open = step->index < record->fields.depth && record->open[step->index].call == step->call;
    return is_open ? await : NULL;
}

/* The step as a call by itself. */
static struct call call_of_step(const struct step *step, const struct await *await, struct reading now)
{
    uint64_t wall_ns = now.wall_ns - step->begin.wall_ns;
    uint64_t cpu_ns = now.cpu_ns - step->thread->record->open[step->index].start_cpu_ns - await->cpu_ns;
    struct call call = {.slot = await->slot, .owner = await->owner};
    call.span = span_of_step(step, wall_ns, cpu_ns < wall_ns ? cpu_ns : wall_ns);
    return call;
}

/* What the step took is the whole's. */
static void add_step(struct await *await, struct span *span, uint64_t end_cpu_ns)
{
    const struct open_call *open = &span->thread->record->open[span->index];
    if (UNLIKELY(recorder.interval_ns))
        span->wall_ns = span->cpu_ns = sampled_ns(span->thread, end_cpu_ns, span->cpu_ns);
    span->intrinsic = await->intrinsic;
    await->running_ns += span->wall_ns;
    await->cpu_ns += span->cpu_ns;
    await->inner_wall_ns += open->inner_wall_ns;
    await->inner_cpu_ns += open->inner_cpu_ns;
}

/* Did it only let others run? trio's locks do so also if they are free. */
static bool gave_way(const struct await *await)
{
    return await->slot->waits && !await->has_waited && !recorder.all_waits;
}

/* It was the last step. False: collectors ended the recording, or the awaited object. */
static bool await_ends(const struct step *step, struct await *await, uint64_t end_ns, uint64_t bytes, bool failed)
{
    if (end_ns - await->start_ns >= recorder.trigger_above_ns && !is_idle_number(await->intrinsic))
        recorder_trigger();
    uint32_t error = failed ? error_here(end_ns) : 0;
    if (is_collecting())
        await = collect_await(step, await, end_ns - await->start_ns);
    if (UNLIKELY(!await))
        return false;
    await_record(step, await, end_ns, bytes, error);
    if (is_statement(await->slot->detail))
        rows_begin(step->thread, await->owner, step->result);
    return true;
}

static void take_name(struct await *await, uint32_t detail)
{
    await->detail = detail;
    await->has_name = true;
}

/* The surrounding request, if it is not sampled, takes its name. */
static void name_around(const struct await *await, const struct span *span)
{
    uint32_t detail = detail_of_await(await, NULL);
    struct await *around = await->is_inside_passed_over ? request_around(await, span->thread) : NULL;
    if (around && detail)
        take_name(around, detail);
    else
        name_request_around(span, detail);
}

void step_end(struct step *step, bool ended, bool failed)
{
    struct await *await = await_stepped(step);
    if (!await)
        return;
    struct thread *thread = step->thread;
    struct thread_record *record = thread->record;
    struct reading now = clock_read(&thread->clock);
    if (UNLIKELY(thread->marked))
        marks_leave(thread, step->index, step->call, now);
    struct call call = call_of_step(step, await, now);
    uint64_t bytes = ended && !failed ? bytes_of_await(await, step->result) : 0;
    bool is_whole = ended && await->start_ns == step->begin.wall_ns; /* it never was suspended, as a call */
    if (is_whole && call.slot->waits && is_no_event(&call, bytes, failed))
        return;
    if (ended && !is_whole && gave_way(await)) {
        span_pass(&call.span);
        return;
    }
    add_step(await, &call.span, now.cpu_ns);
    if (UNLIKELY(is_number_passed_over(await->intrinsic)) && record->open[step->index].detail != await->detail)
        take_name(await, record->open[step->index].detail);
    if (is_inside_passed_over(&call.span) || UNLIKELY(await->is_inside_passed_over)) {
        if (ended)
            name_around(await, &call.span);
        span_forget(&call.span);
        return;
    }
    charge_parent(record, &call.span);
    if (!ended)
        record->fields.made--;
    else if (!await_ends(step, await, now.wall_ns, bytes, failed))
        return;
    if (is_whole && call.slot->waits == WAITS_rows)
        rows_recorded(call.owner, &call.span, bytes);
    close_call(record, step->index);
}
