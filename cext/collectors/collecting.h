/* Data collectors: the user's own code that says, at a call's end, what the program was about.

   The way of a call through here: what is known of its place (collectors/identification.h), each collector in turn, what they claim
   verified after each, so that the next sees what holds; then the stack that the call is recorded by (collectors/claims.h), and an
   event where the name of the transaction changed. It runs on the thread that called, after all else is known, and
   nothing that a collector calls is recorded. What it takes is recording's own cost. One that fails too often, or
   takes too much, is called no more; the reason is in the experiment. */
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdbool.h>
#include <stdint.h>

#include "collectors/claims.h"
#include "collectors/collectors.h"
#include "collectors/identification.h"
#include "collectors/pseudo_sections.h"
#include "collectors/transaction_names.h"
#include "core/recorder.h"
#include "core/visible.h"
#include "interpose_collector.h"

/* What a collector may change of what is recorded, but for the transaction's name. */
struct claims {
    const char *module;
    uint64_t base, size;
    const char *section;
    uint64_t statement;
};

/* What a collector is given, behind it what keeps the texts in it alive, what it finds claimed, and the texts that others
   made in their `scratch` before it. */
struct told {
    struct interpose_area area;
    const struct identified *place;
    uint64_t address;
    struct claims before;
    char made[COLLECTORS_AT_MOST][INTERPOSE_SCRATCH_BYTES];
};

/* Whether it changed what is recorded. What cannot be is not. */
bool run_collector(struct collector *collector, struct told *told, const struct span *span, PyObject **made);

void fill_area(struct told *told, const struct identified *place, const struct span *span, const void *native,
               bool is_here);

/* For the next collector: what the one before it wrote into the scratch area and what is known already is as it was. */
void tell_next(struct told *told, const struct collector *before, const struct span *span, bool is_here);

struct claim claim_of(const struct told *told, uint32_t collector);

/* What is left to do for a call that collectors were asked of: record it; record the name of the transaction behind it as
   well; nothing, for a collector forked or ended the recording. */
enum collected { COLLECTED, COLLECTED_LATER_NAMED, COLLECTED_GONE };

/* A call has ended, and is about to be recorded: have it named. */
enum collected collect(struct span *span, const void *native, bool is_here);

static inline bool is_collecting(void)
{
    return UNLIKELY(collectors.on);
}

/* Record the call, by whatever name it got. `is_here`: the frame that runs is the one that called. */
static inline void record_collected(struct span *span, uint64_t bytes, uint32_t error, const void *native, bool is_here)
{
    enum collected collected = is_collecting() ? collect(span, native, is_here) : COLLECTED;
    if (UNLIKELY(collected == COLLECTED_GONE))
        return;
    span_record(span, bytes, error);
    if (UNLIKELY(collected == COLLECTED_LATER_NAMED))
        record_name(span, named_here(span->thread, span), true);
}
