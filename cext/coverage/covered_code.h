/* Code objects under statement coverage: their plans, and where it is noted that their places were executed. */
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "coverage/covered_plan.h"
#include "cpython/known_code.h"

struct probes;

struct covered_code {
    struct known_code is;
    uint32_t observed;
    uint32_t left_out;           /* of the files with this serial: there was no room */
    uint32_t looked_at;          /* for probes, at this choice (coverage/probed_code.h) */
    struct probes *probes;       /* in this code, or NULL */
    PyCodeObject *with_probes;   /* the code that is executed instead, or NULL */
    struct covered_plan *plan;
    struct coverage_table *tables; /* the one used last comes first */
};

extern struct known_codes covered_codes;

static inline struct covered_code *covered_code_of(PyCodeObject *code, frame *here)
{
    return (struct covered_code *)known_code_of(&covered_codes, code, here);
}

/* The same, or NULL if it was not examined yet. */
static inline struct covered_code *covered_code_known(PyCodeObject *code)
{
    return code_extra(code, covered_codes.index);
}

/* Its plan, made when it is first wanted; NULL if memory is short. An exception must not be set. */
struct covered_plan *plan_covered(struct covered_code *known);

/* The table for a context, which is now first in the list; tables of other files are dropped. */
struct coverage_table *other_coverage_table(struct covered_code *known, uint32_t context, frame *here);

/* Where to record it now; NULL if that is not possible. */
static inline struct coverage_table *table_of(struct covered_code *known, frame *here)
{
    uint32_t context = coverage.contexts ? coverage_context() : 0;
    struct coverage_table *table = known->tables;
    if (LIKELY(table && table->serial == coverage.serial && table->context == context))
        return table;
    return other_coverage_table(known, context, here);
}

static inline void note_place(struct coverage_table *table, uint32_t place)
{
    if (place)
        place_in(table, place - 1)->executed = 1;
}

static inline void come_to(struct covered_code *known, uint32_t place, frame *here)
{
    struct coverage_table *table = coverage_is_here() ? table_of(known, here) : NULL;
    if (LIKELY(table != NULL))
        note_place(table, place);
}

/* After the jump the instruction `unit` is executed. */
static inline void note_branch(struct covered_branch *branch, const struct planned_branch *planned, uint32_t unit)
{
    if (unit == planned->next_unit)
        branch->went_next = 1;
    else
        branch->went_other = 1;
}
