/* What the bytecode of a code object tells: at which instructions its lines are come to, and its loops.

   A *spot* is a place where a line is come to: the beginning of a run of instructions of one line, or the target of a way
   back of a loop. Spot 0 is the function's beginning, before any line. As the compiler makes loops:

   - `for`: the way back leads to FOR_ITER (or GET_ANEXT), in the line of the `for`; the body begins with the first
     instruction of another line after it. Where there is none, the loop is in one line, and its ways back tell its passes.
   - `while`: its test stands at the top, and once more at the bottom, from where a way leads back to the body. `continue` leads
     back to the top. */
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "cpython/bytecode.h"
#include "lines/lines.h"

enum {
    SPOT_BACK = 1,  /* come to by a loop's way back alone */
    SPOT_CHECK = 2, /* come to by a way back where the spot before lies behind it, or in the same line */
    SPOT_FLAGS = 30, /* where they stand in spot_of */
    SPOT_NUMBER = (1u << SPOT_FLAGS) - 1,
    /* And what the interpreter takes for its event, in ticks: before it tells, and after that. */
    SPOT_BEFORE = 32,
    SPOT_AFTER = 48,
};

static inline int64_t ticks_before(uint64_t flagged)
{
    return (int64_t)(flagged >> SPOT_BEFORE & UINT16_MAX);
}

static inline int64_t ticks_after(uint64_t flagged)
{
    return (int64_t)(flagged >> SPOT_AFTER);
}

/* The interpreter asks at each instruction if a line begins, and none is specialised; else it tells of those that begin one, and
   these are not. It makes the object of a line's number, or tells none. */
enum { ASKS_AT_INSTRUCTIONS = !HAS_MONITORING, NUMBERS_ARE_MADE = HAS_MONITORING };

struct spot {
    int line;             /* -1: none */
    uint32_t instruction; /* in code units */
    uint32_t flags;
    uint16_t ticks_before, ticks_after;
    bool is_untold; /* there is no event of it (cpython/bytecode.h): the branch that leads there tells it */
};

struct planned_loop {
    uint32_t target; /* of the way back, in code units */
    uint32_t last;   /* the farthest instruction that leads there */
    uint32_t spot;   /* that counts entries into the body */
    int line;
    uint32_t level;
    bool is_for;
    bool in_one_line;
};

struct plan {
    uint32_t units, spots, loops;
    uint32_t entries_by_branch; /* there are loops whose body is first come to by a branch within its line */
    uint32_t has_untold; /* there are such spots */
    uint32_t ways_back_in_line; /* there are jumps back to the same line */
    uint32_t begin; /* the instruction whose line event says that the function begins, and nothing else; 0: none */
    struct spot *spot;
    struct planned_loop *loop;
    uint64_t spot_of[]; /* by instruction: the spot, above it its flags, above these its ticks */
};

/* NULL where memory is short. An exception must not be set. */
struct plan *plan_of(PyCodeObject *code);
void plan_free(struct plan *plan);

/* Set what is calibrated: a cost of LINE_COSTS, that of an instruction which has its own, or of all others. */
#define PLAIN_INSTRUCTION "instruction"
void line_cost_set(const char *name, double ticks);

/* Add to the plan what the interpreter takes for its lines, as calibrated. */
void plan_add_costs(struct plan *plan, const struct bytecode *code, int first_line);
