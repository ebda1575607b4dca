/* A call of one collector: its input, and its claims, which are verified. */
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "collectors/claims.h"
#include "collectors/collectors.h"
#include "collectors/identification.h"
#include "collectors/pseudo_sections.h"
#include "core/recorder.h"

/* What a collector may change of the recorded call, besides the transaction's name. */
struct claims {
    const char *module;
    uint64_t base, size;
    const char *section;
    uint64_t statement;
};

/* A collector's input, followed by what keeps its texts alive, the claims that it finds, and the texts that earlier
   collectors made in their `scratch`. */
struct told {
    struct interpose_area area;
    const struct identified *place;
    uint64_t address;
    struct claims before;
    char made[COLLECTORS_AT_MOST][INTERPOSE_SCRATCH_BYTES];
};

/* Whether it changed the recorded call. Invalid changes are undone. */
bool run_collector(struct collector *collector, struct told *told, const struct span *span, PyObject **made);

void fill_area(struct told *told, const struct identified *place, const struct span *span, const void *native,
               bool is_here);

/* For the next collector: restore the scratch area and the facts. */
void tell_next(struct told *told, const struct collector *before, const struct span *span, bool is_here);

struct claim claim_of(const struct told *told, uint32_t collector);
