#define _GNU_SOURCE
#include "sampler/sampler.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/ticks.h"
#include "sampler/memory.h"
#include "sampler/native_code.h"
#include "sampler/threads.h"
#include "sampler/waking.h"

enum {
    PROCESSES_AT_MOST = 192, /* two descriptors each */
    FAILURES_AT_MOST = 20, /* samples in a row: it is another program now */
    FLUSHED_EVERY_NS = 500000000,
    AT_TICK_NS = 200000, /* after it: what has to be done before the sampler runs */
    SHORTEST_TURN_NS = 100000, /* that Linux 6.12 and later knows; others do not look at it */
    HALVINGS = 20,
    SETTLED_AFTER_NS = 4500000, /* most kernels have counted a thread's CPU time by then (a tick) */
};

struct sampler {
    struct sampled_process *processes[PROCESSES_AT_MOST];
    unsigned count;
    int founder, control; /* descriptors: of its directory, and of its control page, or -1 */
    struct waking waking;
    struct counters counters;
    bool is_paused;
    uint64_t pauses; /* that have begun */
    uint64_t interval_ns, at_each_rate_bytes, flushed_ns, next_ns;
    uint64_t settle_ns; /* when to settle what was in doubt in the last round; UINT64_MAX: nothing was */
    uint64_t random;
    struct timespec changed; /* the directory, when it was last listed */
};

struct sampler *sampler_begin(const char *founder, double rate, uint64_t at_each_rate_bytes, const struct counters *counters)
{
    struct sampler *sampler = calloc(1, sizeof *sampler);
    if (!sampler)
        return NULL;
    sampler->control = -1;
    sampler->counters = *counters;
    sampler->interval_ns = (uint64_t)(1e9 / rate);
    sampler->at_each_rate_bytes = at_each_rate_bytes;
    sampler->next_ns = clock_ns(CLOCK_MONOTONIC);
    sampler->settle_ns = UINT64_MAX;
    sampler->random = key_of(sampler->next_ns, (uint64_t)getpid());
    sampler->founder = open(founder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (sampler->founder >= 0 && waking_begin(&sampler->waking))
        return sampler;
    int failed = errno;
    if (sampler->founder >= 0)
        close(sampler->founder);
    free(sampler);
    errno = failed;
    return NULL;
}

/* --- processes */

static void drop(struct sampler *sampler, unsigned index)
{
    process_forget(sampler->processes[index]);
    sampler->processes[index] = sampler->processes[--sampler->count];
}

int sampler_add(struct sampler *sampler, pid_t pid, const char *directory, const struct interpreter_layout *layout,
                const char *libraries, uint64_t memory_limit_bytes)
{
    struct sampled_process *process = NULL;
    if (sampler->count == PROCESSES_AT_MOST)
        return EINVAL;
    int failed = process_begin(&process, pid, directory, layout, libraries);
    if (failed)
        return failed;
    process->waking = &sampler->waking;
    process->counters = &sampler->counters;
    process->memory.pending.limit_bytes = memory_limit_bytes;
    for (unsigned index = sampler->count; index > 0; index--)
        if (sampler->processes[index - 1]->pid == pid)
            drop(sampler, index - 1);
    sampler->processes[sampler->count++] = process;
    return 0;
}

int sampler_refuse(const char *directory, int why)
{
    struct tables *tables = malloc(sizeof *tables);
    int failed = tables ? tables_begin(tables, directory) : ENOMEM;
    if (!failed) {
        tables_refuse(tables, why);
        failed = tables->failed;
        tables_end(tables);
    }
    free(tables);
    return failed;
}

/* --- instants */

struct scheduling { /* sched_attr of the kernel's; not all C libraries have it */
    uint32_t size, policy;
    uint64_t flags;
    int32_t nice;
    uint32_t priority;
    uint64_t runtime_ns, deadline_ns, period_ns;
};

/* The calling thread is to run when it wakes: it needs a processor for an instant only. Else the kernel wakes it 50 microseconds
   late, and lets who has the processor go on to the end of its turn, which is no random instant. */
static void wake_at_once(void)
{
    struct scheduling own = {0};
    prctl(PR_SET_TIMERSLACK, 1ul);
    if (syscall(SYS_sched_getattr, 0, &own, sizeof own, 0u) == 0 && own.policy == SCHED_OTHER) {
        own.runtime_ns = SHORTEST_TURN_NS;
        syscall(SYS_sched_setattr, 0, &own, 0u);
    }
}

/* A number that cannot be foreseen, below 2^32 (xorshift). */
static uint64_t next_random(struct sampler *sampler)
{
    sampler->random ^= sampler->random << 13;
    sampler->random ^= sampler->random >> 7;
    sampler->random ^= sampler->random << 17;
    return sampler->random >> 32;
}

/* From half an interval to one and a half: a program that does something at regular times is not misread. */
static void choose_next(struct sampler *sampler)
{
    uint64_t now = clock_ns(CLOCK_MONOTONIC), after = sampler->interval_ns / 2 + (sampler->interval_ns * next_random(sampler) >> 32);
    sampler->next_ns += after;
    if (sampler->next_ns < now)
        sampler->next_ns = now + after;
}

static void drop_ended(struct sampler *sampler)
{
    for (unsigned index = sampler->count; index > 0; index--) {
        struct pollfd handle = {.fd = sampler->processes[index - 1]->handle, .events = POLLIN};
        if (poll(&handle, 1, 0) > 0)
            drop(sampler, index - 1);
    }
}

/* Whether the founder's control page says that recording is paused. */
static bool is_paused(struct sampler *sampler)
{
    off_t at = sizeof(struct file_head) + offsetof(struct control, paused);
    uint32_t paused = 0;
    if (sampler->control < 0)
        sampler->control = openat(sampler->founder, data_types[DATA_THREADS].name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    return sampler->control >= 0 && pread(sampler->control, &paused, sizeof paused, at) == (ssize_t)sizeof paused && paused;
}

static void tell(struct sampler *sampler, uint32_t tid)
{
    for (unsigned index = 0; index < sampler->count; index++) {
        struct sampled_process *process = sampler->processes[index];
        for (uint32_t number = 0; number < process->thread_count; number++)
            if (process->threads[number].tid == tid)
                native_code_tell(process, &process->threads[number]);
    }
}

/* False if somebody has requested the end. Threads that notes are about are looked at at once: by and by they are elsewhere. */
static bool wait_until(struct sampler *sampler, uint64_t time_ns)
{
    uint32_t tid;
    enum woken woken;
    while ((woken = waking_wait(&sampler->waking, time_ns, &tid)) == WOKEN_BY_THREAD)
        tell(sampler, tid);
    return woken == WOKEN_TO_SAMPLE;
}

/* A process that is sampled for long is sampled more and more rarely: at half the rate the same room lasts twice as
   long, so a week takes at most ten times as much as the first minutes. */
static bool is_its_turn(const struct sampler *sampler, struct sampled_process *process)
{
    uint64_t bytes = process->tables.samples.end + process->tables.memory.end + process->tables.counts.end;
    if (bytes > sampler->at_each_rate_bytes * (process->halvings + 1) && process->halvings < HALVINGS)
        process->halvings++;
    return process->rounds++ % (1u << process->halvings) == 0;
}

/* Whether an instant is at a tick of the kernel. Since Linux 6.5, ticks are at multiples of their interval. On older
   kernels the answer is mostly no. */
static bool is_at_tick(uint64_t time_ns)
{
    struct timespec tick;
    return clock_getres(CLOCK_MONOTONIC_COARSE, &tick) == 0 && tick.tv_nsec && time_ns % (uint64_t)tick.tv_nsec < AT_TICK_NS;
}

static void sample_all(struct sampler *sampler)
{
    uint64_t round_ns = clock_ns(CLOCK_MONOTONIC);
    drop_ended(sampler);
    bool was_paused = sampler->is_paused;
    sampler->is_paused = is_paused(sampler);
    sampler->pauses += sampler->is_paused && !was_paused;
    if (sampler->is_paused)
        return;
    for (unsigned index = sampler->count; index > 0; index--) {
        struct sampled_process *process = sampler->processes[index - 1];
        if (!is_its_turn(sampler, process))
            continue;
        process->chosen_ns = sampler->next_ns;
        process->round_ns = round_ns;
        process->pauses = sampler->pauses;
        process->is_at_tick = is_at_tick(round_ns);
        process->failures = threads_sample(process) ? 0 : process->failures + 1;
        if (process->has_doubts)
            sampler->settle_ns = round_ns + SETTLED_AFTER_NS;
        if (process->failures == FAILURES_AT_MOST || process->tables.failed)
            drop(sampler, index - 1);
    }
}

static void settle_all(struct sampler *sampler)
{
    sampler->settle_ns = UINT64_MAX;
    for (unsigned index = 0; index < sampler->count; index++)
        threads_settle(sampler->processes[index]);
}

static void flush_all(struct sampler *sampler, uint64_t now)
{
    if (now < sampler->flushed_ns + FLUSHED_EVERY_NS)
        return;
    for (unsigned index = 0; index < sampler->count; index++)
        tables_flush(&sampler->processes[index]->tables);
    sampler->flushed_ns = now;
}

static bool has_changed(struct sampler *sampler)
{
    struct stat status;
    if (fstat(sampler->founder, &status) || (status.st_mtim.tv_sec == sampler->changed.tv_sec &&
                                             status.st_mtim.tv_nsec == sampler->changed.tv_nsec))
        return false;
    sampler->changed = status.st_mtim;
    return true;
}

void sampler_run(struct sampler *sampler, uint64_t for_ns)
{
    uint64_t end_ns = clock_ns(CLOCK_MONOTONIC) + for_ns;
    wake_at_once();
    while (!has_changed(sampler)) {
        bool is_due = sampler->next_ns <= end_ns;
        uint64_t until_ns = is_due ? sampler->next_ns : end_ns;
        if (sampler->settle_ns < until_ns) {
            if (!wait_until(sampler, sampler->settle_ns))
                return;
            settle_all(sampler);
        }
        if (!wait_until(sampler, until_ns) || !is_due)
            return;
        sample_all(sampler);
        flush_all(sampler, clock_ns(CLOCK_MONOTONIC));
        choose_next(sampler);
    }
}

int sampler_try(pid_t pid, uint64_t address, bool *has_clock)
{
    char word[sizeof(uint64_t)];
    struct schedule_files files = schedule_open(pid, (uint32_t)pid);
    *has_clock = files.clock >= 0;
    schedule_close(files);
    errno = EPERM; /* if the mappings are unknown */
    return remote_read(pid, address, word, sizeof word) ? 0 : errno;
}

void sampler_stop(struct sampler *sampler)
{
    waking_stop(&sampler->waking);
}

void sampler_end(struct sampler *sampler)
{
    while (sampler->count)
        drop(sampler, sampler->count - 1);
    close(sampler->founder);
    waking_end(&sampler->waking);
    if (sampler->control >= 0)
        close(sampler->control);
    free(sampler);
}
