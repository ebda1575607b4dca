#define _GNU_SOURCE
#include "kernel/note_cost.h"

#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "core/clock.h"
#include "kernel/rings.h"

enum { RING_BYTES = 1 << 20, ROUNDS = 25, CALLS = 200, SLEEPS = 4, SLEEP_NS = 20 * 1000 };

struct measured {
    uint64_t call_ns, sleep_cpu_ns; /* of one call and one sleep, in the fastest round */
};

/* The shortest call, and the shortest time on a processor, that was noted. */
struct noted {
    uint64_t call_ns, on_ns;
    uint64_t begun_ns, in_ns;
};

static uint64_t least(uint64_t one, uint64_t other)
{
    return one < other ? one : other;
}

static uint64_t difference(uint64_t larger, uint64_t smaller)
{
    return larger > smaller ? larger - smaller : 0;
}

static struct measured measure(void)
{
    struct measured found = {UINT64_MAX, UINT64_MAX};
    const struct timespec sleep = {.tv_nsec = SLEEP_NS};
    for (int round = 0; round < ROUNDS; round++) {
        uint64_t begin_ns = clock_ns(CLOCK_MONOTONIC);
        for (int call = 0; call < CALLS; call++)
            syscall(SYS_getppid);
        found.call_ns = least(found.call_ns, (clock_ns(CLOCK_MONOTONIC) - begin_ns) / CALLS);
        begin_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
        for (int each = 0; each < SLEEPS; each++)
            nanosleep(&sleep, NULL);
        found.sleep_cpu_ns = least(found.sleep_cpu_ns, (clock_ns(CLOCK_THREAD_CPUTIME_ID) - begin_ns) / SLEEPS);
    }
    return found;
}

static void take(const struct note *note, struct noted *noted)
{
    bool is_call = note->number == SYS_getppid;
    if (note->kind == NOTE_ENTER) {
        noted->begun_ns = is_call ? note->time_ns : 0;
    } else if (note->kind == NOTE_EXIT && is_call && noted->begun_ns) {
        noted->call_ns = least(noted->call_ns, note->time_ns - noted->begun_ns);
    } else if (note->kind == NOTE_IN) {
        noted->in_ns = note->time_ns;
    } else if (note->kind == NOTE_OUT && noted->in_ns) {
        noted->on_ns = least(noted->on_ns, note->time_ns - noted->in_ns);
    }
}

static struct noted noted_in(struct rings *rings)
{
    struct note note;
    struct noted found = {.call_ns = UINT64_MAX, .on_ns = UINT64_MAX};
    rings_look(rings, true);
    while (rings_next(rings, &note))
        take(&note, &found);
    return found;
}

static struct note_costs costs_of(struct measured plain, struct measured watched, struct noted noted)
{
    struct note_costs costs = {.call_ns = difference(watched.call_ns, plain.call_ns)};
    if (noted.call_ns < UINT64_MAX)
        costs.inside_ns = least(difference(noted.call_ns, plain.call_ns), costs.call_ns);
    costs.switch_ns = (int64_t)difference(watched.sleep_cpu_ns, noted.on_ns);
    costs.switch_own_ns = least(difference(watched.sleep_cpu_ns, plain.sleep_cpu_ns + costs.call_ns), (uint64_t)costs.switch_ns);
    return costs;
}

int note_cost(struct tracepoints tracepoints, bool has_stacks, struct note_costs *costs)
{
    struct rings rings;
    struct measured plain = measure();
    int failed = rings_begin(&rings, tracepoints, RING_BYTES, false, has_stacks);
    if (failed)
        return failed;
    failed = rings_add(&rings, (pid_t)syscall(SYS_gettid), false);
    if (!failed) {
        struct measured watched = measure();
        *costs = costs_of(plain, watched, noted_in(&rings));
    }
    rings_end(&rings);
    return failed;
}
