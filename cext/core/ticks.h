/* The quickest clock there is: the processor's own counter where it runs evenly on all processors, else the monotonic
   clock. A tick is no unit of time; how many nanoseconds it takes is measured against the monotonic clock. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "core/visible.h"

/* What the counter and the monotonic clock say at the same moment. */
struct tick_pair {
    uint64_t ticks;
    uint64_t ns;
};

/* Whether the counter may be used; said once, before the first tick is read. */
VISIBLE extern bool ticks_are_counted;

static inline uint64_t clock_ns(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* The processor's counter. It is read without a fence (lfence, rdtscp), which would double its cost. So the processor
   may read it some dozen nanoseconds early, while instructions before it still run; at both ends of a call alike.
   Successive readings on one processor never go back (Intel's manual, volume 3, "Time-Stamp Counter"). */
static inline uint64_t ticks_counter(void)
{
#if defined(__x86_64__)
    return __builtin_ia32_rdtsc(); /* the header of __rdtsc takes longer than most files here */
#else
    return 0;
#endif
}

static inline uint64_t ticks_now(void)
{
    return LIKELY(ticks_are_counted) ? ticks_counter() : clock_ns(CLOCK_MONOTONIC);
}

/* Find out which of the two it is; once in a process. */
VISIBLE void ticks_choose(void);

/* Read both; false if they cannot be read close together: the kernel then keeps its time by something else, or
   the counter is emulated. */
bool ticks_pair(struct tick_pair *pair);

/* A first measure of how many ticks pass in a nanosecond; takes a fifth of a millisecond. */
VISIBLE double ticks_measure(void);
