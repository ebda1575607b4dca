/* The places of a code object, and the branches between them, as its bytecode tells them.

   A place is a run of instructions of one line, or a part of it that may be executed without the rest: what follows an
   instruction that ends a statement, or decides, and stands behind all that came before. That may divide what is one statement;
   whoever reads knows the syntax tree and puts it together again. */
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "coverage/coverage.h"
#include "cpython/bytecode.h"

struct planned_branch {
    uint32_t unit;              /* of the jump */
    uint32_t origin;            /* the place that contains it, from 1 */
    uint32_t next, other;       /* the places it leads to, from 1, or 0: it ends there */
    uint32_t next_unit, target; /* the instructions there */
    uint32_t depth;             /* of an `async for`: where its exception is on the stack */
    bool is_awaited;            /* an `async for`: no jump, but the end of what is awaited, by StopAsyncIteration */
};

struct covered_plan {
    uint32_t units, places, branches;
    bool has_parts;   /* there are places that no line's event tells: several of a line in a row, or one that is forgotten */
    bool has_columns;
    struct covered_place *place;
    struct planned_branch *branch;
    uint32_t *branch_of; /* by instruction, from 1: its jump, or the `async for` whose body begins or which ends there; 0: none */
    uint32_t place_of[]; /* by instruction, from 1; 0: in none */
};

/* NULL if memory is short. */
struct covered_plan *covered_plan_of(const struct bytecode *code);
void covered_plan_free(struct covered_plan *plan);

/* Fill in the plan's places, for which there is room; then its branches. */
void find_places(struct covered_plan *plan, const struct bytecode *code);
void find_branches(struct covered_plan *plan, const struct bytecode *code);

/* The conditional jump that this instruction is, or NULL. */
const struct planned_branch *branch_at(const struct covered_plan *plan, uint32_t unit);

/* The `async for` whose body begins with this instruction, or which ends with it; NULL: none. */
const struct planned_branch *awaited_at(const struct covered_plan *plan, uint32_t unit);

/* The conditional jump that an event tells of, which goes from `unit` to `to`; NULL: none that is planned. Where there are also events
   of instructions, since 3.14, `unit` is not the jump, but the NOT_TAKEN behind it, or the POP_ITER behind the loop's END_FOR. */
const struct planned_branch *branch_told(const struct covered_plan *plan, uint32_t unit, uint32_t to);

/* The place that an instruction is in, from 1, or 0. */
static inline uint32_t place_of_unit(const struct covered_plan *plan, uint32_t unit)
{
    return LIKELY(unit < plan->units) ? plan->place_of[unit] : 0;
}

/* The same for the first instruction of a place; 0 for others. A jump into the middle of a part of a line has not
   reached the part, but an end of the line that the compiler put there. */
static inline uint32_t place_begun_by(const struct covered_plan *plan, uint32_t unit)
{
    uint32_t place = place_of_unit(plan, unit);
    return unit && place_of_unit(plan, unit - 1) == place ? 0 : place;
}

/* Whether instruction events are needed, because lines are not enough. */
static inline bool needs_instructions(const struct covered_plan *plan)
{
    return plan->has_parts || plan->branches;
}
