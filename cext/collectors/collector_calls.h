/* A call of one collector: what it is given, and what it claims, which is verified. */
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "collectors/claims.h"
#include "collectors/collectors.h"
#include "collectors/identification.h"
#include "collectors/pseudo_sections.h"
#include "core/recorder.h"

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
