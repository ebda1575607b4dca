/* Which witness the clock goes by in this process: each has to pass a test. */
#define _GNU_SOURCE
#include "core/clock.h"

#include <errno.h>
#include <sys/prctl.h>

#include "core/clock_witness.h"

/* Set by how much the kernel may prolong the thread's sleeps (by default 50 microseconds); returns the previous value. */
static int sleep_exactly(int slack_ns)
{
    int before_ns = prctl(PR_GET_TIMERSLACK);
    if (before_ns > 0 && slack_ns > 0)
        prctl(PR_SET_TIMERSLACK, (unsigned long)slack_ns);
    return before_ns;
}

/* The mark must be gone after a sleep in a system call. A short one may end before the thread has left its
   processor, for example if a hypervisor takes that away; so the sleep must have been counted as a switch, or be a
   long one. */
static bool tells_a_switch(struct clock *clock)
{
    struct timespec sleep = {0, 512}; /* the first is of 4 us: of shorter ones most end too early in virtual machines */
    const long longest_ns = 2 * 1000 * 1000;
    uint64_t before;
    int slack_ns = sleep_exactly(1);
    do {
        sleep.tv_nsec *= 8;
        clock_sync(clock);
        before = witness_switches();
        nanosleep(&sleep, NULL);
    } while (witness_switches() == before && sleep.tv_nsec < longest_ns);
    sleep_exactly(slack_ns);
    return *clock->word != clock->mark;
}

/* It must stay while the thread computes; a processor lost in between is not the witness's fault, so one try in
   several is enough. */
static bool stays_while_computing(struct clock *clock)
{
    for (int tries = 0; tries < 8; tries++) {
        uint64_t until_ns = clock_sync(clock).wall_ns + 5000;
        while (clock_ns(CLOCK_MONOTONIC) < until_ns) {
        }
        if (*clock->word == clock->mark)
            return true;
    }
    return false;
}

static const char *fault_of(enum clock_kind kind)
{
    struct clock clock = {0};
    const char *fault = NULL;
    clock_begin(&clock, kind);
    if (kind == CLOCK_TSC && clock.kind == CLOCK_RSEQ)
        fault = "the kernel does not keep its time by the processor's counter";
    else if (clock.kind != kind)
        fault = kind != CLOCK_PERF ? "rseq is not registered for this thread" : "no perf event for this thread";
    else if (kind != CLOCK_SYSCALL && !tells_a_switch(&clock))
        fault = "self-test: a switch went unnoticed";
    else if (kind != CLOCK_SYSCALL && !stays_while_computing(&clock))
        fault = "self-test: the mark did not stay";
    clock_end(&clock);
    return fault;
}

enum clock_kind clock_choose(enum clock_kind wanted, const char **why)
{
    const char *fault = NULL;
    int saved = errno;
    enum clock_kind kind = wanted == CLOCK_AUTO ? CLOCK_TSC : wanted;
    while (kind != CLOCK_SYSCALL) {
        const char *found = fault_of(kind);
        if (!found)
            break;
        fault = found;
        kind = clock_kind_after(kind);
    }
    errno = saved;
    *why = fault ? fault : wanted == CLOCK_AUTO ? "self-test passed" : "as set";
    return kind;
}
