/* How often a thread gets a processor. Each of its perf events costs it 1 to 2 us each time, even one that is off. */
#pragma once

#include <stdbool.h>

#include "sampler/schedule.h"

struct switches {
    struct schedule since; /* where the current count began; no slices: the thread is new */
    bool are_frequent;     /* too often for perf events: they would cost about 1 % */
};

/* Take the thread's present figures. True if enough was seen to decide again whether its switches are frequent. */
bool switches_count(struct switches *switches, const struct schedule *now);
