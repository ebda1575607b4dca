/* How often a thread gets a processor. Each time costs it 1 to 2 us if there is a perf event of it, even one that is off. */
#pragma once

#include <stdbool.h>

#include "sampler/schedule.h"

struct switches {
    struct schedule since; /* up to here they are counted */
    bool are_frequent;     /* too often for perf events: they would cost about 1 % */
};

/* The thread is so far now. Whether that has changed how frequent they are. */
bool switches_count(struct switches *switches, const struct schedule *now);
