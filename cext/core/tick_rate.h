/* How many nanoseconds a tick of the processor's counter takes. Each thread measures it again every ten milliseconds,
   because the kernel slews the monotonic clock. */
#pragma once

#include "core/ticks.h"

enum { RATE_SHIFT = 32 };

/* Rates are nanoseconds a tick, times 2 to the power of RATE_SHIFT; 0: unknown. */
struct tick_rate {
    uint64_t known;
    uint64_t measured;      /* the last measurement, which counts if it is like `known`, or like the next one */
    struct tick_pair since; /* when the present measurement began; zeroes: with the next pair */
};

/* A thread begins with what the process knows. */
void tick_rate_begin(struct tick_rate *rate);

void tick_rate_note(struct tick_rate *rate, struct tick_pair now);

/* Did the counter and the monotonic clock agree between two synchronisations, at that rate? */
bool tick_rate_held(uint64_t ns_a_tick, struct tick_pair from, struct tick_pair to);

/* It did not: a suspended machine, or a wrong first measurement. It is measured anew, for new threads too. */
void tick_rate_forget(struct tick_rate *rate);
