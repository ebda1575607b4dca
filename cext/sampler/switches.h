/* How often a thread gets a processor. Each time, each perf event of it costs it 1 to 2 us, even one that is off. */
#pragma once

#include <stdbool.h>

#include "sampler/schedule.h"

struct switches {
    struct schedule since; /* up to here they are counted; no slices: it was not seen yet */
    bool are_frequent;     /* too often for perf events: they would cost about 1 % */
};

/* The thread is so far now. Whether enough of it was seen to say again how frequent they are. */
bool switches_count(struct switches *switches, const struct schedule *now);
