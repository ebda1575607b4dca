#include "collectors/transaction_names.h"

#include <stdio.h>

void record_name(const struct span *span, const struct named *named, bool is_later)
{
    struct thread *thread = span->thread;
    struct thread_record *record = thread->record;
    bool is_inside = boundary_of(span->intrinsic) & BOUNDARY_IS;
    uint32_t parent = is_inside ? span->call : span->index ? record->open[span->index - 1].call : 0;
    struct event *event = event_place(thread);
    record->fields.made++;
    if (!event) {
        record->fields.dropped++;
        return;
    }
    if (++thread->calls == 0)
        thread->calls = 1;
    uint64_t start_ns = span->begin.wall_ns + (is_later ? span->wall_ns : 0);
    *event = (struct event){.start_ns = start_ns,
                            .start_cpu_ns = span->begin.cpu_ns + (is_later ? span->cpu_ns : 0),
                            .thread = thread->number,
                            .call = thread->calls,
                            .parent = parent,
                            .intrinsic = collectors.named,
                            .stack = span->stack,
                            .detail = intern_name(named->text),
                            .task = span->task};
    event_written(thread, start_ns, start_ns);
}

bool change_name(const struct span *span, struct named *named, const char *name)
{
    if (span->task && !named->within)
        return false;
    snprintf(named->text, sizeof named->text, "%s", name ? name : "");
    named->bytes = (uint32_t)strlen(named->text);
    if (boundary_of(span->intrinsic) & BOUNDARY_READS)
        return true;
    record_name(span, named, false);
    return false;
}
