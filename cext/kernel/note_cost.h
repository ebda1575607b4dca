/* What perf records cost the calls and switches that they describe. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "kernel/tracepoints.h"

/* `call_ns`: what its records cost a system call that does little; `inside_ns`: the part between the call's own two times.
   `switch_ns`: what the kernel charges a watched thread for a switch to it, outside the time between its two notes;
   `switch_own_ns`: the part of that which the kernel charges only because the thread is watched. */
struct note_costs {
    uint64_t call_ns, inside_ns, switch_own_ns;
    int64_t switch_ns;
};

/* Measure them. Returns 0 or an errno. */
int note_cost(struct tracepoints tracepoints, bool has_stacks, struct note_costs *costs);
