/* What perf records cost the calls and the switches that they are about. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "kernel/tracepoints.h"

/* `call_ns`: what its records cost a system call that does little, and `inside_ns` the part between the call's own two times.
   `switch_ns`: what the kernel charges a watched thread for a switch to it outside of the two notes, and `switch_own_ns` the part
   that it does not charge if the thread is not watched. */
struct note_costs {
    uint64_t call_ns, inside_ns, switch_own_ns;
    int64_t switch_ns;
};

/* Measure them. Returns 0 or an errno. */
int note_cost(struct tracepoints tracepoints, bool has_stacks, struct note_costs *costs);
