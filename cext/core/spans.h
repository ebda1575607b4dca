/* How a call becomes an event.

   The way of a call: `recording` (may this thread record?), `span_begin` (an entry in the table of calls in progress, then
   the clocks), the real call, `span_stop` (the clocks), `span_record` (the event, the entry taken out). None of these
   waits, locks, allocates, raises or asks; what does (a new thread, a full block, a forked child) is out of line and
   timed as own cost. */
#pragma once

#include "core/recording.h"
#include "core/room.h"
#include "core/usage.h"

/* A call being timed, on the stack of the shim. */
struct span {
    struct thread *thread;
    struct reading begin;
    uint64_t wall_ns, cpu_ns;
    uint32_t index, call, intrinsic, stack, detail, task;
};

/* Between the two the thread's state is being written. A signal handler that interrupts it, and makes a recorded
   call, sees that: its call passes through. */
static inline void writing_begin(struct thread *thread)
{
    __atomic_store_n(&thread->writing, 1, __ATOMIC_RELAXED);
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
}

static inline void writing_end(struct thread *thread)
{
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    __atomic_store_n(&thread->writing, 0, __ATOMIC_RELAXED);
}

/* False if the call is too deep inside others for the table: it is counted as dropped. */
static inline bool span_begin(struct span *span, struct thread *thread, uint32_t intrinsic, uint32_t stack,
                              uint32_t detail)
{
    struct thread_record *record = thread->record;
    writing_begin(thread);
    uint32_t index = record->fields.depth;
    if (UNLIKELY(index >= OPEN_CALLS)) {
        record->fields.made++;
        record->fields.dropped++;
        writing_end(thread);
        return false;
    }
    struct open_call *open = &record->open[index];
    span->thread = thread;
    span->index = index;
    if (UNLIKELY(++thread->calls == 0)) /* 0 is no call's number */
        thread->calls = 1;
    span->call = thread->calls;
    span->intrinsic = intrinsic;
    span->stack = stack;
    span->detail = detail;
    span->task = 0;
    open->inner_wall_ns = 0;
    open->inner_cpu_ns = 0;
    open->call = span->call;
    open->intrinsic = intrinsic;
    open->stack = stack;
    open->detail = detail;
    span->begin = clock_read(&thread->clock);
    open->start_ns = span->begin.wall_ns;
    open->start_cpu_ns = span->begin.cpu_ns;
    record->fields.made++;
    __atomic_store_n(&record->fields.depth, index + 1, __ATOMIC_RELEASE);
    writing_end(thread);
    return true;
}

/* Is the call still this process's, on this thread? Not after a fork inside of it. */
static inline bool span_open(const struct span *span)
{
    const struct thread *thread = span->thread;
    return LIKELY(__atomic_load_n(&thread->recording, __ATOMIC_RELAXED) && thread == current_thread && span->index < thread->record->fields.depth &&
                  thread->record->open[span->index].call == span->call);
}

/* The end of the call: read the clocks. False if its beginning was not this process's. */
static inline bool span_stop(struct span *span)
{
    if (!span_open(span))
        return false;
    writing_begin(span->thread);
    struct reading end = clock_read(&span->thread->clock);
    writing_end(span->thread);
    span->wall_ns = end.wall_ns - span->begin.wall_ns;
    span->cpu_ns = end.cpu_ns - span->thread->record->open[span->index].start_cpu_ns;
    if (span->cpu_ns > span->wall_ns)
        span->cpu_ns = span->wall_ns;
    return true;
}

/* Take the call out of the table; with greenlets, calls may end in another order than that of their beginnings. */
static inline void close_call(struct thread_record *record, uint32_t index)
{
    uint32_t depth = record->fields.depth;
    record->open[index].call = 0;
    while (depth > 0 && record->open[depth - 1].call == 0)
        depth--;
    __atomic_store_n(&record->fields.depth, depth, __ATOMIC_RELEASE);
}

/* The call becomes no event and counts as passed. The calls inside it count for the call around it. */
static inline void span_pass(const struct span *span)
{
    struct thread_record *record = span->thread->record;
    writing_begin(span->thread);
    record->fields.made--;
    record->fields.passed++;
    close_call(record, span->index);
    writing_end(span->thread);
}

/* The call leaves no event, and is not counted. */
static inline void span_forget(const struct span *span)
{
    writing_begin(span->thread);
    span->thread->record->fields.made--;
    close_call(span->thread->record, span->index);
    writing_end(span->thread);
}

static inline uint32_t charge_parent(struct thread_record *record, const struct span *span)
{
    if (LIKELY(span->index == 0))
        return 0;
    struct open_call *parent = &record->open[span->index - 1];
    parent->inner_wall_ns += span->wall_ns;
    parent->inner_cpu_ns += span->cpu_ns;
    return parent->call;
}

/* Where the thread's next event goes; NULL if there is no room. */
static inline struct event *event_place(struct thread *thread)
{
    struct block *block = thread->block;
    if (LIKELY(block && block->head.used < BLOCK_EVENTS))
        return &block->events[block->head.used];
    return event_room(thread);
}

/* It is there, and counts. */
static inline void event_written(struct thread *thread, uint64_t start_ns, uint64_t end_ns)
{
    struct block_head *head = &thread->block->head;
    if (start_ns < head->first_ns)
        head->first_ns = start_ns;
    if (end_ns > head->last_ns)
        head->last_ns = end_ns;
    __atomic_store_n(&head->used, head->used + 1, __ATOMIC_RELEASE);
    thread->record->fields.recorded++;
}

/* Of the CPU time of a thread up to `end_ns` as much as ends with ticks: whole intervals. The first tick of a thread comes at
   any time, or threads that end before one would never be seen. */
static inline uint64_t sampled_ns(const struct thread *thread, uint64_t end_ns, uint64_t cpu_ns)
{
    uint64_t every_ns = recorder.interval_ns;
    uint64_t phase_ns = (thread->number * 0x9e3779b97f4a7c15u >> 16) % every_ns;
    uint64_t begin_ns = end_ns > cpu_ns ? end_ns - cpu_ns : 0;
    return ((end_ns + phase_ns) / every_ns - (begin_ns + phase_ns) / every_ns) * every_ns;
}

/* The same, where calls are sampled. */
VISIBLE void span_record_sampled(const struct span *span, uint64_t bytes, uint32_t error);

/* Write the event, and do nothing that is due besides; false if there is no room. */
static inline bool span_write(const struct span *span, uint64_t bytes, uint32_t error)
{
    struct thread *thread = span->thread;
    struct thread_record *record = thread->record;
    struct open_call *open = &record->open[span->index];
    writing_begin(thread);
    uint32_t parent = charge_parent(record, span);
    struct event *event = event_place(thread);
    if (UNLIKELY(!event)) {
        record->fields.dropped++;
        close_call(record, span->index);
        writing_end(thread);
        return false;
    }
    *event = (struct event){
        .start_ns = span->begin.wall_ns,
        .start_cpu_ns = span->begin.cpu_ns,
        .wall_ns = span->wall_ns,
        .cpu_ns = span->cpu_ns,
        .inner_wall_ns = open->inner_wall_ns,
        .inner_cpu_ns = open->inner_cpu_ns,
        .bytes = bytes,
        .thread = thread->number,
        .call = span->call,
        .parent = parent,
        .intrinsic = span->intrinsic,
        .stack = span->stack,
        .detail = span->detail,
        .error = error,
        .task = span->task,
    };
    event_written(thread, span->begin.wall_ns, span->begin.wall_ns + span->wall_ns);
    close_call(record, span->index);
    writing_end(thread);
    return true;
}

/* Append the event. */
static inline void span_append(const struct span *span, uint64_t bytes, uint32_t error)
{
    if (LIKELY(span_write(span, bytes, error)) && UNLIKELY(recorder.governed))
        governor_note(span->intrinsic);
    if (UNLIKELY(span->begin.wall_ns + span->wall_ns >= span->thread->look_ns))
        thread_look(span->thread);
}

/* The call has ended: its event, where it is not left out by sampling. */
static inline void span_record(const struct span *span, uint64_t bytes, uint32_t error)
{
    if (UNLIKELY(recorder.interval_ns))
        span_record_sampled(span, bytes, error);
    else
        span_append(span, bytes, error);
}
