#include "core/spans.h"

#include "core/levels.h"

static void look_if_due(struct thread *thread, const struct span *span)
{
    if (span->begin.wall_ns + span->wall_ns >= thread->look_ns)
        thread_look(thread);
}

/* The last event of an interval represents it, with the CPU time until the next tick; a call in which no interval
   ends is not recorded. Wall times are at least as long, otherwise calls that did not overlap would. User events are
   kept. */
void span_record_sampled(const struct span *span, uint64_t bytes, uint32_t error)
{
    struct thread *thread = span->thread;
    struct thread_record *record = thread->record;
    struct open_call *open = &record->open[span->index];
    struct span sampled = *span;
    sampled.wall_ns = sampled.cpu_ns = sampled_ns(thread, open->start_cpu_ns + span->cpu_ns, span->cpu_ns);
    open->inner_wall_ns = open->inner_cpu_ns;
    if (sampled.cpu_ns || is_told_by_program(span->intrinsic)) {
        span_append(&sampled, bytes, error);
        return;
    }
    record->fields.made--;
    record->fields.gathered++;
    close_call(record, span->index);
    look_if_due(thread, span);
}
