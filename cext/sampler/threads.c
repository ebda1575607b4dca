#define _GNU_SOURCE
#include "sampler/threads.h"


#include "core/ticks.h"
#include "sampler/calls.h"
#include "sampler/collector.h"
#include "sampler/memory.h"
#include "sampler/native_code.h"
#include "sampler/on_processor.h"
#include "sampler/schedule.h"
#include "sampler/stacks.h"
#include "sampler/task_names.h"
#include "sampler/thread_counts.h"
#include "sampler/thread_list.h"

enum {
    ALIKE_RUNNING = 20, ALIKE_WAITING = 1000, /* how many samples are combined at most */
    AN_INSTANT_NS = 50000, TRIES = 4,
    INTERRUPTED_WITHIN_NS = 150000, /* of the instant that we chose: the timer's interrupt, and what the kernel counts to nobody */
    SOONER_NS = 20000, /* than it was: by so much the kernel's figures may be off */
    JUST_NOW_NS = 200000,
    WITHOUT_PYTHON = 1, /* a mark */
    RESTS_AFTER = 10, RESTS = 4, RESTS_LONGER_AFTER = 50, RESTS_LONGER = 16, /* rounds */
};

/* The first sample of a thread is always alone: the others count from its times on. */
static bool is_alike(const struct sample *a, const struct sample *b)
{
    return a->time_ns && a->state == b->state && a->stack == b->stack && a->call == b->call && a->intrinsic == b->intrinsic &&
           a->task == b->task && a->thread == b->thread && a->samples < (a->state == SAMPLE_RUNS ? ALIKE_RUNNING : ALIKE_WAITING);
}

static void keep_sample(struct sampled_process *process, struct sampled_thread *thread, const struct taken *taken)
{
    struct sample *pending = &thread->pending.sample;
    const struct sample *sample = &taken->sample;
    if (!thread->is_sampled || !is_alike(pending, sample)) {
        thread_write_pending(process, thread);
        thread->pending = *taken;
        thread->is_sampled = thread->is_sampled || thread->has_first;
        thread->has_first = true;
        return;
    }
    pending->last_ns = sample->last_ns;
    pending->cpu_ns = sample->cpu_ns;
    pending->run_delay_ns = sample->run_delay_ns;
    pending->samples++;
    for (unsigned place = 0; place < process->counters->count; place++)
        thread->pending.counts[place] += taken->counts[place];
}

/* The thread has gone on: nothing more can be told of these. */
static void keep_asked(struct sampled_process *process, struct sampled_thread *thread)
{
    unsigned count = thread->asked.count;
    thread->asked.count = 0;
    for (unsigned index = 0; index < count; index++)
        keep_sample(process, thread, &thread->asked.taken[index]);
}

/* Whether the thread has waited since its last sample: then its stack has not changed. */
static bool has_only_waited(const struct sampled_thread *thread, const struct schedule *now)
{
    bool waited = !thread->asked.count && thread->pending.sample.time_ns && thread->pending.sample.state == SAMPLE_WAITS;
    return waited && now->slices == thread->schedule.slices && now->cpu_ns == thread->schedule.cpu_ns && now->slices;
}

/* Since when the thread has been off the processor, if it did nothing but run and wait for one since the last sample; else
   longer ago; now, if it has none. The kernel reports only those waits for a processor that have ended. */
static uint64_t off_since_ns(const struct sampled_thread *thread, const struct sample *sample)
{
    const struct moment *last = &thread->last;
    if (!last->time_ns)
        return sample->time_ns;
    int64_t off_ns = (int64_t)(sample->time_ns - last->time_ns) - (int64_t)(sample->cpu_ns - last->cpu_ns) -
                     (int64_t)(sample->run_delay_ns - last->run_delay_ns) + (int64_t)last->off_ns;
    return sample->time_ns - (off_ns > 0 ? (uint64_t)off_ns : 0);
}

/* Whether the thread lost its processor at `off_ns` for a reason that does not depend on what it executes: our timer
   interrupted it at the chosen instant, or it made room for us at a later tick. Otherwise the kernel notices the end of a
   turn mostly at certain system calls (those that ask for CPU time). If the thread has no clock, `off_ns` may be late by up
   to a tick; then only a loss at the chosen instant counts. */
static bool lost_it_at_random(const struct sampled_process *process, uint64_t off_ns, bool has_clock)
{
    if (off_ns + SOONER_NS < process->chosen_ns)
        return false;
    if (off_ns < process->chosen_ns + (has_clock ? INTERRUPTED_WITHIN_NS : AN_INSTANT_NS))
        return true;
    return has_clock && process->is_at_tick && off_ns + JUST_NOW_NS > process->round_ns;
}

/* Whether the thread runs, waits, or is ready to run without a processor. Its clock, if it has one, was read and is
   read again: it advances only on a processor. A thread that lost the processor to us ran. */
static enum sample_state state_of(const struct sampled_process *process, struct sampled_thread *thread,
                                  const struct sample *sample, bool has_frames)
{
    int processor = -1;
    uint64_t off_ns = off_since_ns(thread, sample);
    bool has_clock = thread->files.clock >= 0;
    bool goes_on = has_clock && schedule_cpu(&thread->files, 0) > sample->cpu_ns;
    bool runs = goes_on || schedule_runs(thread->files, process->pid, thread->tid, &processor);
    bool ran_just_now = goes_on || lost_it_at_random(process, off_ns, has_clock);
    if (runs && !has_clock) {
        ran_just_now = goes_on = on_processor(process, thread, sample, ran_just_now, has_frames, processor);
        thread->doubt.is_open = !goes_on;
    } else {
        thread->uncounted = 0;
    }
    thread->last = (struct moment){sample->time_ns, sample->cpu_ns, sample->run_delay_ns, 0};
    if (runs && !goes_on)
        thread->last.off_ns = sample->time_ns - off_ns;
    return !runs ? SAMPLE_WAITS : ran_just_now ? SAMPLE_RUNS : SAMPLE_READY;
}

/* What the thread runs. Returns the mark of its stack. Without Python code there is only one: as long as no note has been made, the
   thread has had no processor, or has hardly left the kernel, so the note tells where it came from. */
static uint64_t find_code(struct sampled_process *process, struct sampled_thread *thread, const struct call_in_progress *call,
                          struct sample *sample)
{
    if (!has_interpreter(process))
        return WITHOUT_PYTHON;
    struct found_stack stack = stack_of(process, thread);
    sample->task = task_name(process, thread->address, call->greenlet, &stack);
    sample->stack = stack.number;
    thread->waiting = (struct waiting){stack.torn ? 0 : call->lock_wait, stack.number, sample->task, stack.mark};
    return stack.mark;
}

/* Whether the thread is still in the wait in which its code was found: it has run no Python code meanwhile. */
static bool is_in_same_wait(const struct sampled_thread *thread, const struct call_in_progress *call)
{
    return call->lock_wait && call->lock_wait == thread->waiting.call;
}

static uint64_t code_of_wait(const struct sampled_thread *thread, struct sample *sample)
{
    sample->stack = thread->waiting.stack;
    sample->task = thread->waiting.task;
    return thread->waiting.mark;
}

/* A thread that waits now may still have run when its stack was read, some microseconds ago. If so, the stack has changed since.
   Without this check, the last microseconds before each wait are missed: a large part of a short function. */
static bool ran_until_now(struct sampled_process *process, struct sampled_thread *thread, uint64_t mark)
{
    if (!has_interpreter(process) || !mark)
        return false;
    struct found_stack stack = stack_of(process, thread);
    return stack.torn || stack.mark != mark;
}

/* Whether the thread runs the garbage collector, below a line of Python: then the stack of the sample says so. */
static bool find_collector(struct sampled_process *process, const struct sampled_thread *thread, struct sample *sample)
{
    bool runs_python = sample->stack && sample->stack != STACK_NOT_READ;
    if (!runs_python || (sample->state != SAMPLE_RUNS && sample->state != SAMPLE_READY))
        return false;
    uint32_t stack = sample->stack;
    sample->stack = collector_below(process, thread, stack);
    return sample->stack != stack;
}

/* Returns the mark of its stack; 0 where nothing more can be told of it. */
static uint64_t sample_what_runs(struct sampled_process *process, struct sampled_thread *thread, struct sample *sample)
{
    struct call_in_progress call = call_of(process, thread);
    bool is_same = is_in_same_wait(thread, &call);
    uint64_t mark = is_same ? code_of_wait(thread, sample) : find_code(process, thread, &call, sample);
    uint64_t before_ns = thread->last.time_ns ? thread->last.cpu_ns : 0;
    memory_ran(process, sample->cpu_ns - before_ns, thread->record, sample->stack);
    sample->state = state_of(process, thread, sample, !is_same && has_interpreter(process) && mark);
    if (sample->state == SAMPLE_WAITS && !is_same && ran_until_now(process, thread, mark))
        sample->state = SAMPLE_RUNS;
    if (sample->state != SAMPLE_WAITS && call.begins) {
        sample->state = SAMPLE_RECORDS;
        thread->doubt.is_open = false;
    }
    sample->thread = thread->record;
    sample->call = call.call;
    sample->intrinsic = call.intrinsic;
    thread->waited = 0;
    return find_collector(process, thread, sample) ? 0 : mark;
}

static void sample_what_waits(struct sampled_thread *thread, struct sample *sample)
{
    struct sample times = *sample;
    *sample = thread->pending.sample;
    sample->time_ns = sample->last_ns = times.time_ns;
    sample->samples = 1;
    sample->run_delay_ns = times.run_delay_ns;
    thread->last = (struct moment){times.time_ns, sample->cpu_ns, times.run_delay_ns, 0};
    thread->waited++;
}

/* The times of a thread belong to one instant. Who reads them may lose the processor in between: then they are read again. */
static bool read_times(const struct sampled_process *process, struct sampled_thread *thread, struct schedule *schedule,
                       struct sample *sample)
{
    uint64_t before_ns = thread->last.cpu_ns;
    for (int tries = 0; tries < TRIES; tries++) {
        uint64_t began_ns = clock_ns(CLOCK_MONOTONIC);
        if (!schedule_read(thread->files, process->pid, thread->tid, schedule))
            return false;
        uint64_t cpu_ns = schedule_cpu(&thread->files, schedule->cpu_ns);
        sample->cpu_ns = cpu_ns > before_ns ? cpu_ns : before_ns;
        sample->run_delay_ns = schedule->run_delay_ns;
        sample->time_ns = sample->last_ns = clock_ns(CLOCK_MONOTONIC);
        if (sample->time_ns - began_ns < AN_INSTANT_NS)
            break;
    }
    return true;
}

/* Keep the sample of which it was not known whether its thread had a processor. */
static void settle_doubt(struct sampled_process *process, struct sampled_thread *thread, const struct schedule *now)
{
    if (!thread->doubt.is_open)
        return;
    thread->doubt.is_open = false;
    thread->doubt.taken.sample.state = on_processor_settle(thread, now, clock_ns(CLOCK_MONOTONIC)) ? SAMPLE_RUNS : SAMPLE_READY;
    keep_sample(process, thread, &thread->doubt.taken);
}

void threads_settle(struct sampled_process *process)
{
    struct schedule now;
    for (uint32_t index = 0; process->has_doubts && index < process->thread_count; index++) {
        struct sampled_thread *thread = &process->threads[index];
        if (thread->doubt.is_open && schedule_read(thread->files, process->pid, thread->tid, &now))
            settle_doubt(process, thread, &now);
    }
    process->has_doubts = false;
}

/* Where Python code runs, notes are of little use if it switches often: most would come too late. */
static void choose_events(struct sampled_process *process, struct sampled_thread *thread, const struct schedule *schedule,
                          uint64_t cpu_ns)
{
    if (!has_interpreter(process) || !switches_count(&thread->switches, schedule))
        return;
    if (thread->switches.are_frequent) {
        schedule_end_clock(&thread->files, cpu_ns, schedule->cpu_ns);
        keep_asked(process, thread);
        instructions_end(&thread->instructions);
    } else {
        schedule_begin_clock(&thread->files, thread->tid);
    }
}

static void sample_thread(struct sampled_process *process, struct sampled_thread *thread)
{
    struct schedule schedule;
    struct taken taken = {.sample = {.tid = thread->tid, .samples = 1}};
    struct sample *sample = &taken.sample;
    uint64_t mark = 0;
    if (!read_times(process, thread, &schedule, sample)) {
        process->until_listed = 0;
        return;
    }
    settle_doubt(process, thread, &schedule);
    bool has_waited = has_only_waited(thread, &schedule);
    thread->schedule = schedule;
    choose_events(process, thread, &schedule, sample->cpu_ns);
    if (has_waited)
        sample_what_waits(thread, sample);
    else
        mark = sample_what_runs(process, thread, sample);
    if (!has_waited)
        thread_counts_add(process, thread, taken.counts);
    bool runs_code = sample->state == SAMPLE_RUNS || sample->state == SAMPLE_READY;
    if (!runs_code || !native_code_is_same(&thread->asked, mark))
        keep_asked(process, thread);
    if (runs_code && thread->doubt.is_open) {
        thread->doubt.taken = taken;
        process->has_doubts = true;
    } else if (!runs_code || !native_code_ask(process, thread, mark, &taken)) {
        keep_sample(process, thread, &taken);
    }
}

/* Of hundreds of threads most wait for ever: they are sampled more rarely. What they use before that is noticed is
   not lost, but counts for what they do then. */
static bool may_rest(struct sampled_thread *thread)
{
    if (thread->rests == 0)
        thread->rests = thread->waited < RESTS_AFTER ? 0 : thread->waited < RESTS_LONGER_AFTER ? RESTS : RESTS_LONGER;
    else
        thread->rests--;
    return thread->rests > 0;
}

bool threads_sample(struct sampled_process *process)
{
    if (!threads_list(process))
        return false;
    for (uint32_t index = 0; index < process->thread_count; index++)
        if (!may_rest(&process->threads[index]))
            sample_thread(process, &process->threads[index]);
    memory_look(process);
    return !process->is_over;
}
