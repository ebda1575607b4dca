/* The quickest clock there is: the processor's own counter where it runs evenly on all processors, else the monotonic
   clock. A tick is no unit of time; how many nanoseconds it takes is measured against the monotonic clock. */
#pragma once

#include "core/clock.h"

/* Whether the counter may be used; said once, before the first tick is read. */
VISIBLE extern bool ticks_are_counted;

static inline uint64_t ticks_now(void)
{
#if defined(__x86_64__)
    if (LIKELY(ticks_are_counted))
        return __builtin_ia32_rdtsc(); /* the header of __rdtsc takes longer than most files here */
#endif
    return clock_ns(CLOCK_MONOTONIC);
}

/* Find out which of the two it is. */
VISIBLE void ticks_choose(void);

/* A first measure of how many ticks pass in a nanosecond; takes a fifth of a millisecond. */
VISIBLE double ticks_measure(void);
