#define _GNU_SOURCE
#include "kernel/thread_clock.h"

#include <inttypes.h>
#include <stdio.h>

#include "core/clock.h"

/* What the kernel counts itself; 0 if it does not say, or the thread has ended. */
static uint64_t counted_cpu_ns(const struct watched_thread *thread)
{
    char path[64];
    uint64_t cpu_ns = 0;
    snprintf(path, sizeof path, "/proc/%u/task/%u/schedstat", thread->process->pid, thread->tid);
    FILE *file = fopen(path, "re");
    if (file && fscanf(file, "%" SCNu64, &cpu_ns) != 1)
        cpu_ns = 0;
    if (file)
        fclose(file);
    return cpu_ns;
}

/* Up to a note that says since when it is in its present state; one that is late changes nothing. */
static void pass(struct watched_thread *thread, uint64_t time_ns, bool was_away)
{
    uint64_t passed_ns = time_ns > thread->last_ns ? time_ns - thread->last_ns : 0;
    thread->last_ns += passed_ns;
    if (thread->state == RUNS || (thread->state == UNSURE && !was_away)) {
        thread->cpu_ns += passed_ns;
        thread->process->cpu_ns += passed_ns;
    } else if (thread->state == READY) {
        thread->record.fields.run_delay_ns += passed_ns;
        thread->process->delay_ns += passed_ns;
    }
}

/* Take over what the kernel had counted then: more than our notes have, where some were lost. */
static void correct(struct watched_thread *thread)
{
    uint64_t missing_ns = thread->correct_ns > thread->cpu_ns ? thread->correct_ns - thread->cpu_ns : 0;
    thread->corrected_ns = 0;
    thread->cpu_ns += missing_ns;
    thread->process->cpu_ns += missing_ns;
}

void thread_advance(struct watched_thread *thread, uint64_t time_ns, bool was_away)
{
    if (thread->corrected_ns && time_ns >= thread->corrected_ns) {
        pass(thread, thread->corrected_ns, was_away);
        correct(thread);
    }
    pass(thread, time_ns, was_away);
    thread->record.fields.seen_ns = thread->last_ns;
    thread->record.fields.end_cpu_ns = thread->cpu_ns;
    thread->process->end_ns = thread->last_ns > thread->process->end_ns ? thread->last_ns : thread->process->end_ns;
}

void watched_thread_was_there(struct watched_thread *thread)
{
    thread->cpu_before_ns = counted_cpu_ns(thread);
}

bool thread_ask_kernel(struct watched_thread *thread)
{
    uint64_t cpu_ns = counted_cpu_ns(thread);
    thread->corrected_ns = clock_ns(CLOCK_MONOTONIC);
    thread->correct_ns = cpu_ns > thread->cpu_before_ns ? cpu_ns - thread->cpu_before_ns : 0;
    return cpu_ns > 0;
}
