#include "hooks/statement_events.h"

#include "core/clock.h"
#include "core/fields.h"
#include "core/filter.h"
#include "core/levels.h"
#include "core/transaction_sampling.h"
#include "core/visible.h"
#include "cpython/frame.h"
#include "cpython/sites.h"
#include "cpython/tasks.h"
#include "hooks/call.h"
#include "hooks/checked_begin.h"
#include "hooks/filtering.h"
#include "hooks/hot_path.h"
#include "hooks/shim.h"
#include "hooks/transaction_marks.h"

static const struct slot *told_lines; /* what they are recorded as; NULL: they are not */

/* The number of the line's stack; 0 if there is no room. */
static uint32_t stack_of_line(frame *here)
{
    uint32_t own_code = 0;
    struct place *place = place_of(here, &own_code);
    return LIKELY(place != NULL) ? stack_at(place, 0) : 0;
}

static void append_instant(struct thread *thread, const struct event *instant)
{
    struct thread_record *record = thread->record;
    struct event *event = event_place(thread);
    record->fields.made++;
    if (UNLIKELY(!event)) {
        record->fields.dropped++;
    } else {
        *event = *instant;
        event_written(thread, instant->start_ns, instant->start_ns);
    }
    if (UNLIKELY(recorder.governed))
        governor_note(instant->intrinsic);
    if (UNLIKELY(instant->start_ns >= thread->look_ns))
        thread_look(thread);
}

/* The line that `running`, the thread's innermost frame, has reached. */
static void tell_line(void *running)
{
    const struct slot *slot = told_lines;
    PyThreadState *state = recorded_state();
    struct thread *thread = LIKELY(state != NULL) ? current_thread : NULL;
    if (UNLIKELY(!slot || !thread_records(thread) || thread->quiet))
        return;
    if (UNLIKELY(thread->marked))
        marks_settle(thread);
    if (UNLIKELY(slot_lowered(slot)) && !is_timed(slot, slot->intrinsic)) {
        struct call call = {.slot = slot};
        begin_untimed(&call, thread, slot->intrinsic);
        return;
    }
    if (UNLIKELY(filter_is_on() | chosen.one_in) && !passes_early(slot, slot->intrinsic, true, thread, state))
        return;
    struct reading now = clock_read(&thread->clock);
    uint32_t task = thread->in_loop || thread->greenlet ? task_of_thread(thread) : 0;
    uint32_t stack = stack_of_line(running), depth = thread->record->fields.depth;
    if (UNLIKELY(++thread->calls == 0)) /* 0 is no call's number */
        thread->calls = 1;
    struct event instant = {
        .start_ns = now.wall_ns,
        .start_cpu_ns = now.cpu_ns,
        .thread = thread->number,
        .call = thread->calls,
        .parent = depth ? thread->record->open[depth - 1].call : 0,
        .intrinsic = slot->intrinsic,
        .stack = stack,
        .task = task,
    };
    append_instant(thread, &instant);
}

void tell_lines_as(const struct slot *slot)
{
    told_lines = slot;
    recorder.tell_line = slot ? tell_line : NULL;
}

uint64_t time_told_lines(struct thread *thread, unsigned times)
{
    frame *here = frame_innermost(running_state());
    struct reading begin = clock_read(&thread->clock);
    for (unsigned time = 0; time < times; time++)
        tell_line(here);
    return (clock_read(&thread->clock).wall_ns - begin.wall_ns) / times;
}
