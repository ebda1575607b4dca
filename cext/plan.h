/* What the bytecode of a code object tells: at which instructions its lines are come to, and its loops.

   A *spot* is a place where a line is come to: the beginning of a run of instructions of one line, or the target of a way
   back of a loop. Spot 0 is the function's beginning, before any line. As the compiler makes loops:

   - `for`: the way back leads to FOR_ITER (or GET_ANEXT), in the line of the `for`; the body begins with the first
     instruction of another line after it. Where there is none, the loop is in one line, and its ways back tell its passes.
   - `while`: its test stands at the top, and once more at the bottom, from where a way leads back to the body. `continue` leads
     back to the top.

   The bytecode is read as it was compiled, whatever the interpreter, or another tool, has made of it since. */
#pragma once

#include <opcode.h>
#include <stdlib.h>

#include "frame.h"

enum {
    SPOT_BACK = 1,  /* come to by a loop's way back alone */
    SPOT_CHECK = 2, /* come to by a way back where the spot before lies behind it, or in the same line */
    SPOT_FLAGS = 30, /* where they stand in spot_of */
    SPOT_NUMBER = (1u << SPOT_FLAGS) - 1,
};

struct spot {
    int line;             /* -1: none */
    uint32_t instruction; /* in code units */
    uint32_t flags;
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
    uint32_t ways_back_in_line; /* there are jumps back to the same line */
    struct spot *spot;
    struct planned_loop *loop;
    uint32_t spot_of[]; /* by instruction: the spot, and its flags above it */
};

/* While it is made: the instructions with their arguments, and their lines. */
struct decoded {
    uint32_t units;
    uint8_t *opcodes;
    uint32_t *targets; /* of jumps backward, else UINT32_MAX */
    int *lines;
};

static bool leads_back(uint8_t opcode)
{
    switch (opcode) {
    case JUMP_BACKWARD:
#if PY_VERSION_HEX < 0x030c0000
    case POP_JUMP_BACKWARD_IF_TRUE:
    case POP_JUMP_BACKWARD_IF_FALSE:
    case POP_JUMP_BACKWARD_IF_NONE:
    case POP_JUMP_BACKWARD_IF_NOT_NONE:
#endif
        return true;
    default:
        return false;
    }
}

/* Jumps count from behind their caches, which are instructions of their own here, with the opcode 0. */
static void decode_instructions(struct decoded *decoded, const uint8_t *bytes)
{
    uint32_t argument = 0;
    for (uint32_t unit = 0; unit < decoded->units; unit++) {
        uint8_t opcode = bytes[2 * unit];
        argument = argument << 8 | bytes[2 * unit + 1];
        decoded->opcodes[unit] = opcode;
        decoded->targets[unit] = UINT32_MAX;
        if (opcode == EXTENDED_ARG)
            continue;
        uint32_t next = unit + 1;
        while (next < decoded->units && bytes[2 * next] == CACHE)
            next++;
        if (leads_back(opcode) && argument <= next)
            decoded->targets[unit] = next - argument;
        argument = 0;
    }
}

static bool decode_lines(struct decoded *decoded, PyCodeObject *code)
{
    PyObject *method = PyObject_CallMethod((PyObject *)code, "co_lines", NULL), *range;
    if (!method)
        return false;
    for (uint32_t unit = 0; unit < decoded->units; unit++)
        decoded->lines[unit] = -1;
    while ((range = PyIter_Next(method))) {
        long begin = PyLong_AsLong(PyTuple_GET_ITEM(range, 0)), end = PyLong_AsLong(PyTuple_GET_ITEM(range, 1));
        PyObject *line = PyTuple_GET_ITEM(range, 2);
        for (long at = begin; at < end && line != Py_None; at += 2)
            if ((uint32_t)at / 2 < decoded->units)
                decoded->lines[at / 2] = (int)PyLong_AsLong(line);
        Py_DECREF(range);
    }
    Py_DECREF(method);
    return !PyErr_Occurred();
}

static void decoded_free(struct decoded *decoded)
{
    free(decoded->opcodes);
    free(decoded->targets);
    free(decoded->lines);
}

static bool decode(struct decoded *decoded, PyCodeObject *code)
{
    PyObject *bytes = PyCode_GetCode(code);
    if (!bytes)
        return false;
    decoded->units = (uint32_t)(PyBytes_GET_SIZE(bytes) / 2);
    decoded->opcodes = malloc(decoded->units + 1);
    decoded->targets = malloc((decoded->units + 1) * sizeof *decoded->targets);
    decoded->lines = malloc((decoded->units + 1) * sizeof *decoded->lines);
    bool done = decoded->opcodes && decoded->targets && decoded->lines;
    if (done)
        decode_instructions(decoded, (const uint8_t *)PyBytes_AS_STRING(bytes));
    Py_DECREF(bytes);
    return done && decode_lines(decoded, code);
}

/* --- spots */

static void add_spot(struct plan *plan, const struct decoded *decoded, uint32_t unit)
{
    plan->spot[plan->spots] = (struct spot){decoded->lines[unit], unit, 0};
    plan->spot_of[unit] = plan->spots++;
}

static void find_spots(struct plan *plan, const struct decoded *decoded, int first_line)
{
    plan->spot[ENTRY_SPOT] = (struct spot){first_line, 0, 0};
    plan->spots = 1;
    for (uint32_t unit = 0, run = ENTRY_SPOT; unit < decoded->units; unit++) {
        bool begins = decoded->lines[unit] != (unit ? decoded->lines[unit - 1] : -1);
        if (begins && decoded->lines[unit] >= 0) {
            add_spot(plan, decoded, unit);
            run = plan->spot_of[unit];
        }
        plan->spot_of[unit] = decoded->lines[unit] < 0 ? (uint32_t)ENTRY_SPOT : run;
    }
}

/* The spot at an instruction, whose run may have begun before it. */
static uint32_t spot_at(struct plan *plan, const struct decoded *decoded, uint32_t unit)
{
    if (plan->spot[plan->spot_of[unit]].instruction != unit && decoded->lines[unit] >= 0)
        add_spot(plan, decoded, unit);
    return plan->spot_of[unit];
}

/* --- loops */

/* A loop is known by where its body is come to again, a `while` with several ways back by its line. */
static struct planned_loop *find_loop(struct plan *plan, uint32_t target, int line, bool is_for)
{
    for (uint32_t index = 0; index < plan->loops; index++) {
        struct planned_loop *loop = &plan->loop[index];
        bool near = loop->target <= target ? target <= loop->last : true;
        if (loop->is_for == is_for && (is_for ? loop->target == target : loop->line == line && near))
            return loop;
    }
    plan->loop[plan->loops] = (struct planned_loop){.target = target, .line = line, .is_for = is_for};
    return &plan->loop[plan->loops++];
}

static void add_way_back(struct plan *plan, const struct decoded *decoded, uint32_t from, uint32_t target)
{
    int here = decoded->lines[from], there = decoded->lines[target];
    bool is_for = decoded->opcodes[target] == FOR_ITER || decoded->opcodes[target] == GET_ANEXT;
    if (there < 0 || (here < 0 && !is_for))
        return;
    int line = is_for || here > there ? there : here;
    struct planned_loop *loop = find_loop(plan, target, line, is_for);
    uint32_t left = plan->spot_of[from], spot = spot_at(plan, decoded, target);
    if (loop->last < from)
        loop->last = from;
    plan->ways_back_in_line |= here == there;
    if (there == line)
        plan->spot[spot].flags |= SPOT_CHECK;
    if (there != line || (here == there && plan->spot[left].instruction > target)) /* the test at the bottom, or the jump */
        plan->spot[left].flags |= SPOT_BACK;
    if (!is_for && there != line)
        loop->spot = spot;
}

/* Entries into the body are counted by its first line, or by the ways back where there is only one line. */
static void find_body(struct plan *plan, const struct decoded *decoded, struct planned_loop *loop)
{
    for (uint32_t unit = loop->target; !loop->spot && unit < loop->last; unit++)
        if (decoded->lines[unit] >= 0 && decoded->lines[unit] != loop->line)
            loop->spot = plan->spot_of[unit];
    if (loop->spot)
        return;
    loop->spot = plan->spot_of[loop->target];
    loop->in_one_line = true;
    plan->entries_by_branch |= !loop->is_for;
}

static void find_level(struct plan *plan, struct planned_loop *loop)
{
    loop->level = 1;
    for (uint32_t index = 0; index < plan->loops; index++) {
        const struct planned_loop *outer = &plan->loop[index];
        loop->level += outer->line == loop->line && outer->target < loop->target && outer->last > loop->last;
    }
}

static void find_loops(struct plan *plan, const struct decoded *decoded)
{
    for (uint32_t unit = 0; unit < decoded->units; unit++)
        if (decoded->targets[unit] < unit)
            add_way_back(plan, decoded, unit, decoded->targets[unit]);
    for (uint32_t index = 0; index < plan->loops; index++)
        find_body(plan, decoded, &plan->loop[index]);
    for (uint32_t index = 0; index < plan->loops; index++)
        find_level(plan, &plan->loop[index]);
}

static void add_flags(struct plan *plan)
{
    for (uint32_t unit = 0; unit < plan->units; unit++)
        plan->spot_of[unit] |= plan->spot[plan->spot_of[unit]].flags << SPOT_FLAGS;
}

/* --- the plan */

static void plan_free(struct plan *plan)
{
    if (!plan)
        return;
    free(plan->spot);
    free(plan->loop);
    free(plan);
}

static uint32_t count_ways_back(const struct decoded *decoded)
{
    uint32_t count = 0;
    for (uint32_t unit = 0; unit < decoded->units; unit++)
        count += decoded->targets[unit] < unit;
    return count;
}

static struct plan *plan_decoded(const struct decoded *decoded, int first_line)
{
    uint32_t ways_back = count_ways_back(decoded);
    struct plan *plan = calloc(1, sizeof *plan + decoded->units * sizeof *plan->spot_of);
    if (!plan)
        return NULL;
    plan->units = decoded->units;
    plan->spot = malloc((decoded->units + ways_back + 1) * sizeof *plan->spot);
    plan->loop = malloc((ways_back + 1) * sizeof *plan->loop);
    if (!plan->spot || !plan->loop) {
        plan_free(plan);
        return NULL;
    }
    find_spots(plan, decoded, first_line);
    find_loops(plan, decoded);
    add_flags(plan);
    return plan;
}

/* NULL where memory is short. An exception must not be set. */
static struct plan *plan_of(PyCodeObject *code)
{
    struct decoded decoded = {0};
    struct plan *plan = decode(&decoded, code) ? plan_decoded(&decoded, code->co_firstlineno) : NULL;
    decoded_free(&decoded);
    PyErr_Clear();
    return plan;
}
