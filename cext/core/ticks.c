#include "core/ticks.h"

#include <string.h>

#include "core/file.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

enum { MEASURED_NS = 200 * 1000, CLOSE_TICKS = 1000 };

bool ticks_are_counted;

static bool counter_is_even(void)
{
    bool even = false;
#if defined(__x86_64__)
    char source[32];
    unsigned a, b, c, d;
    bool trusted = file_read("/sys/devices/system/clocksource/clocksource0/current_clocksource", source, sizeof source) &&
                   (strncmp(source, "tsc", 3) == 0 || strncmp(source, "kvm-clock", 9) == 0);
    even = trusted && __get_cpuid(0x80000007, &a, &b, &c, &d) && d & 1u << 8;
#endif
    return even;
}

void ticks_choose(void)
{
    static bool chosen;
    if (!chosen)
        ticks_are_counted = counter_is_even();
    chosen = true;
}

bool ticks_pair(struct tick_pair *pair)
{
    for (int tries = 0; tries < 8; tries++) {
        uint64_t before = ticks_counter();
        pair->ns = clock_ns(CLOCK_MONOTONIC);
        uint64_t taken = ticks_counter() - before;
        pair->ticks = before + taken / 2;
        if (taken < CLOSE_TICKS)
            return true;
    }
    return false;
}

double ticks_measure(void)
{
    uint64_t begin_ns = clock_ns(CLOCK_MONOTONIC), begin = ticks_now(), now_ns;
    do
        now_ns = clock_ns(CLOCK_MONOTONIC);
    while (now_ns - begin_ns < MEASURED_NS);
    return (double)(ticks_now() - begin) / (double)(now_ns - begin_ns);
}
