/* Data collectors: the user's own code that says, at a call's end, what the program was about.

   The way of a call through here: what is known of its place (collectors/identification.h), each collector in turn, what they claim
   verified after each, so that the next sees what holds; then the stack that the call is recorded by (collectors/claims.h), and an
   event where the name of the transaction changed. It runs on the thread that called, after all else is known, and
   nothing that a collector calls is recorded. What it takes is recording's own cost. One that fails too often, or
   takes too much, is called no more; the reason is in the experiment. */
#pragma once

#include "collectors/collectors.h"
#include "core/recorder.h"

/* What is left to do for a call after its collectors: record it; also record the transaction's name after it; or
   nothing, because a collector forked or ended the recording. */
enum collected { COLLECTED, COLLECTED_LATER_NAMED, COLLECTED_GONE };

/* A call has ended, and is about to be recorded: have it named. */
enum collected collect(struct span *span, const void *native, bool is_here);

static inline bool is_collecting(void)
{
    return UNLIKELY(collectors.on);
}

/* Record a call by the name that collectors give it. */
void record_named(struct span *span, uint64_t bytes, uint32_t error, const void *native, bool is_here);

/* Record the call, under the name that it gets. `is_here`: the running frame made the call. */
static inline void record_collected(struct span *span, uint64_t bytes, uint32_t error, const void *native, bool is_here)
{
    if (is_collecting())
        record_named(span, bytes, error, native, is_here);
    else
        span_record(span, bytes, error);
}
