/* What a thread's record has besides its calls: the cost of recording, its clock, its waits for a processor. */
#define _GNU_SOURCE
#include "core/thread_notes.h"

#include <stdio.h>
#include <string.h>

#include "core/own_thread.h"
#include "core/recording.h"

/* --- own cost */

struct reading own_begin(struct thread *thread)
{
    return thread->own_depth++ ? (struct reading){0, 0} : clock_read(&thread->clock);
}

void thread_charge_own(struct thread *thread, uint64_t wall_ns, uint64_t cpu_ns)
{
    struct thread_fields *fields = &thread->record->fields;
    uint64_t within_ns = cpu_ns < wall_ns ? cpu_ns : wall_ns;
    fields->own_wall_ns += wall_ns;
    fields->own_cpu_ns += within_ns;
    if (fields->depth > thread->describing) {
        fields->inside_wall_ns += wall_ns;
        fields->inside_cpu_ns += within_ns;
    }
}

/* A call that can be suspended has its suspension in its inner time, too, and a sampled one has no times of clocks. */
static bool can_tell_apart(const struct thread *thread)
{
    return !thread->in_loop && !thread->marked && !thread->greenlet && !recorder.interval_ns;
}

void thread_charge_apart(struct thread *thread, uint32_t depth, uint64_t wall_ns, uint64_t cpu_ns)
{
    struct thread_fields *fields = &thread->record->fields;
    uint64_t within_ns = cpu_ns < wall_ns ? cpu_ns : wall_ns;
    fields->own_wall_ns += wall_ns;
    fields->own_cpu_ns += within_ns;
    if (depth && can_tell_apart(thread)) {
        thread->record->open[depth - 1].inner_wall_ns += wall_ns;
        thread->record->open[depth - 1].inner_cpu_ns += within_ns;
    } else if (depth) {
        fields->inside_wall_ns += wall_ns;
        fields->inside_cpu_ns += within_ns;
    }
}

void own_end_apart(struct thread *thread, struct reading begin)
{
    if (thread->own_depth != 1) {
        own_end(thread, begin);
        return;
    }
    uint32_t depth = thread->record->fields.depth;
    struct reading end = clock_read(&thread->clock);
    thread_charge_apart(thread, depth > thread->describing ? depth : 0, end.wall_ns - begin.wall_ns,
                        end.cpu_ns - begin.cpu_ns);
    thread->own_depth--;
}

void own_end_for(struct thread *thread, struct reading begin, uint64_t times)
{
    if (!thread->own_depth) /* the process was forked meanwhile */
        return;
    if (thread->own_depth == 1) {
        struct reading end = clock_read(&thread->clock);
        thread_charge_own(thread, times * (end.wall_ns - begin.wall_ns), times * (end.cpu_ns - begin.cpu_ns));
    }
    thread->own_depth--;
}

void own_end(struct thread *thread, struct reading begin)
{
    own_end_for(thread, begin, 1);
}

/* --- clock and waits for a processor */

#define OWN_RUN_DELAY OWN_PROC "/schedstat"

void thread_note_clock(struct thread *thread, struct reading now)
{
    struct thread_fields *fields = &thread->record->fields;
    __atomic_store_n(&fields->end_cpu_ns, now.cpu_ns, __ATOMIC_RELAXED);
    __atomic_store_n(&fields->seen_ns, now.wall_ns, __ATOMIC_RELAXED);
    fields->syncs = thread->clock.syncs;
    fields->behind_ns = thread->clock.behind_ns;
    fields->clock = thread->clock.kind;
}

/* How long a thread has waited for a processor since it was born; false if the kernel does not tell. */
static bool read_run_delay(const char *path, uint64_t *delay_ns)
{
    char text[96];
    unsigned long long told_ns;
    if (!file_read(path, text, sizeof text) || sscanf(text, "%*u %llu", &told_ns) != 1)
        return false;
    *delay_ns = told_ns;
    return true;
}

static void note_run_delay(struct thread *thread, const char *path)
{
    uint64_t delay_ns;
    if (read_run_delay(path, &delay_ns) && delay_ns >= thread->delay_before_ns)
        __atomic_store_n(&thread->record->fields.run_delay_ns, delay_ns - thread->delay_before_ns, __ATOMIC_RELAXED);
}

void thread_begin_run_delay(struct thread *thread)
{
    if (!read_run_delay(OWN_RUN_DELAY, &thread->delay_before_ns))
        thread->delay_before_ns = 0;
}

void thread_note_run_delay(struct thread *thread)
{
    note_run_delay(thread, OWN_RUN_DELAY);
}

void thread_note_run_delay_of_other(struct thread *thread)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/self/task/%u/schedstat", thread->record->fields.tid);
    note_run_delay(thread, path);
}

uint64_t thread_run_delay_ns(const struct thread *thread)
{
    return __atomic_load_n(&thread->record->fields.run_delay_ns, __ATOMIC_RELAXED);
}

/* --- calibration */

struct thread_mark thread_mark(const struct thread *thread)
{
    const struct thread_fields *fields = &thread->record->fields;
    uint32_t used = thread->block ? thread->block->head.used : 0;
    return (struct thread_mark){fields->made, fields->recorded, fields->dropped, thread->calls, used};
}

void thread_rewind(struct thread *thread, struct thread_mark mark)
{
    struct thread_fields *fields = &thread->record->fields;
    struct block *block = thread->block;
    fields->made = mark.made;
    fields->recorded = mark.recorded;
    fields->dropped = mark.dropped;
    thread->calls = mark.calls;
    if (!block || block->head.used < mark.used)
        return;
    memset(block->events + mark.used, 0, (block->head.used - mark.used) * sizeof *block->events);
    block->head.used = mark.used;
    block->head.first_ns = UINT64_MAX;
}
