#include "hooks/await_event.h"

#include "collectors/collecting.h"
#include "core/levels.h"
#include "core/trace_contexts.h"
#include "core/visible.h"
#include "cpython/raised.h"
#include "hooks/call.h"
#include "hooks/call_detail.h"
#include "hooks/call_result.h"
#include "hooks/slot.h"
#include "hooks/statement_detail.h"

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

uint64_t bytes_of_await(const struct await *await, PyObject *result)
{
    if (await->slot->moves >= MOVES_row)
        return rows_of(await->slot, result);
    return await->slot->moves == MOVES_result ? size_of(result) : await->bytes;
}

static uint32_t route_of_await(const struct await *await)
{
    struct raised raised = raised_keep();
    uint32_t number = detail_of_route(await->slot, await->told);
    raised_restore(raised);
    return number;
}

uint32_t route_of_request(uint32_t thread, uint32_t call)
{
    const struct await *await = request_with_route(thread, call);
    return await ? route_of_await(await) : 0;
}

/* A driver's own object is identified only by what the driver kept; if that is the awaited object, it is there. */
uint32_t detail_of_await(const struct await *await, PyObject *result)
{
    struct call call = {.slot = await->slot};
    if (await->has_name)
        return await->detail;
    uint32_t route = await->told ? route_of_await(await) : 0;
    if (route || await->detail || !result)
        return route ? route : await->detail;
    if (await->slot->subject == SUBJECT_RESULT)
        return late_detail(&call, result);
    return is_statement(await->slot->detail) ? kept_statement(result) : 0;
}

struct span span_of_step(const struct step *step, uint64_t wall_ns, uint64_t cpu_ns)
{
    return (struct span){.thread = step->thread,
                         .begin = step->begin,
                         .wall_ns = wall_ns,
                         .cpu_ns = cpu_ns,
                         .index = step->index,
                         .call = step->call};
}

struct await *collect_await(const struct step *step, struct await *await, uint64_t wall_ns)
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

/* With sampled calls, its time is the number of its ticks, which is in its CPU time. */
static bool ran_at_no_tick(const struct await *await)
{
    return recorder.interval_ns && !await->cpu_ns && !is_told_by_program(await->intrinsic);
}

static struct event event_of_await(const struct await *await, uint64_t end_ns)
{
    uint64_t wall_ns = end_ns - await->start_ns, inner_wall_ns = await->inner_wall_ns + wall_ns - await->running_ns;
    bool sampled = recorder.interval_ns;
    return (struct event){
        .start_ns = await->start_ns,
        .start_cpu_ns = await->start_cpu_ns,
        .wall_ns = sampled ? await->cpu_ns : wall_ns,
        .cpu_ns = await->cpu_ns,
        .inner_wall_ns = sampled ? await->inner_cpu_ns : inner_wall_ns,
        .inner_cpu_ns = await->inner_cpu_ns,
        .thread = await->thread,
        .call = await->call,
        .parent = await->parent,
        .intrinsic = await->intrinsic,
        .stack = await->stack,
        .task = await->task,
    };
}

void await_record(const struct step *step, struct await *await, uint64_t end_ns, uint64_t bytes, uint32_t error)
{
    struct thread *thread = step->thread;
    uint32_t call = await->call;
    if (UNLIKELY(await->thread != thread->number))
        await_moves(await, thread, step->begin.cpu_ns);
    if (UNLIKELY(ran_at_no_tick(await))) {
        thread->record->fields.made--;
        thread->record->fields.gathered++;
        return;
    }
    struct event *event = event_place(thread);
    if (!event) {
        thread->record->fields.dropped++;
        return;
    }
    if (UNLIKELY(await->slot->request & REQUEST_traced))
        trace_context_end(thread, call, await->call);
    *event = event_of_await(await, end_ns);
    event->bytes = bytes;
    event->error = error;
    event->detail = detail_of_await(await, error ? NULL : step->result);
    event_written(thread, await->start_ns, end_ns);
    if (UNLIKELY(recorder.governed))
        governor_note(await->intrinsic);
}
