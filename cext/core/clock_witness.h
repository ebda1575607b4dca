/* How the clock begins to go by a witness (core/clock.h); false if it cannot be had. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "core/clock.h"

bool witness_rseq_begin(struct clock *clock);
bool witness_perf_begin(struct clock *clock);

/* How often the calling thread was switched out, as the kernel counts it. */
uint64_t witness_switches(void);
