/* What perf records cost the calls that they are about. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "kernel/tracepoints.h"

/* Measure what perf records cost a system call that does little: in all (`call_ns`), and the part between the call's own two
   times (`inside_ns`). Returns 0 or an errno. */
int note_cost(struct tracepoints tracepoints, bool has_stacks, uint64_t *call_ns, uint64_t *inside_ns);
