/* The identities of traces and spans. They follow from what log.xml says of a process and from the numbers of an
   event, so that a header can name a span before it is recorded. interpose/exports/identities.py has the same
   formulas. */
#pragma once

#include <stdint.h>

#include "core/visible.h"

struct trace_identity {
    uint64_t high, low;
};

/* The bits of a number mixed, one to one (the last step of SplitMix64). */
static inline uint64_t mixed(uint64_t number)
{
    number = (number ^ (number >> 30)) * 0xbf58476d1ce4e5b9u;
    number = (number ^ (number >> 27)) * 0x94d049bb133111ebu;
    return number ^ (number >> 31);
}

/* What the identities of a process are made from. */
VISIBLE uint64_t identity_seed(uint32_t pid, uint64_t start_ns, uint64_t time_ns);

/* The trace of an experiment, from its founder's seed. */
VISIBLE struct trace_identity identity_of_trace(uint64_t seed);

/* The span of a call; 0 and 0: that of the process. Never 0. */
VISIBLE uint64_t identity_of_span(uint64_t seed, uint32_t thread, uint32_t call);
