/* What the bytecode of a code object tells: at which instructions its lines are come to, and its loops.

   A *spot* is a place where a line is come to: the beginning of a run of instructions of one line, or the target of a way
   back of a loop. Spot 0 is the function's beginning, before any line. As the compiler makes loops:

   - `for`: the way back leads to FOR_ITER (or GET_ANEXT), in the line of the `for`; the body begins with the first
     instruction of another line after it. Where there is none, the loop is in one line, and its ways back tell its passes.
   - `while`: its test stands at the top, and once more at the bottom, from where a way leads back to the body. `continue` leads
     back to the top.

   */
#pragma once

#include "cpython/bytecode.h"
#include "lines/lines.h"

enum {
    SPOT_BACK = 1,  /* come to by a loop's way back alone */
    SPOT_CHECK = 2, /* come to by a way back where the spot before lies behind it, or in the same line */
    SPOT_FLAGS = 30, /* where they stand in spot_of */
    SPOT_NUMBER = (1u << SPOT_FLAGS) - 1,
    SPOT_COST = 32, /* and what the interpreter takes for the event, in ticks */
};

struct spot {
    int line;             /* -1: none */
    uint32_t instruction; /* in code units */
    uint32_t flags;
    uint32_t cost;
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
    uint64_t line_ticks; /* what the interpreter takes for a line's event */
    struct spot *spot;
    struct planned_loop *loop;
    uint64_t spot_of[]; /* by instruction: the spot, above it its flags, above these the cost of its event */
};

/* --- spots */

static void add_spot(struct plan *plan, const struct bytecode *code, uint32_t unit)
{
    plan->spot[plan->spots] = (struct spot){.line = code->lines[unit], .instruction = unit};
    plan->spot_of[unit] = plan->spots++;
}

static void find_spots(struct plan *plan, const struct bytecode *code, int first_line)
{
    plan->spot[ENTRY_SPOT] = (struct spot){.line = first_line};
    plan->spots = 1;
    uint64_t run = ENTRY_SPOT;
    for (uint32_t unit = 0; unit < code->units; unit++) {
        bool begins = code->lines[unit] != (unit ? code->lines[unit - 1] : -1);
        if (begins && code->lines[unit] >= 0) {
            add_spot(plan, code, unit);
            run = plan->spot_of[unit];
        }
        plan->spot_of[unit] = code->lines[unit] < 0 ? (uint32_t)ENTRY_SPOT : run;
    }
}

/* The spot at an instruction, whose run may have begun before it. */
static uint32_t spot_at(struct plan *plan, const struct bytecode *code, uint32_t unit)
{
    if (plan->spot[plan->spot_of[unit]].instruction != unit && code->lines[unit] >= 0)
        add_spot(plan, code, unit);
    return (uint32_t)plan->spot_of[unit];
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

static void add_way_back(struct plan *plan, const struct bytecode *code, uint32_t from, uint32_t target)
{
    int here = code->lines[from], there = code->lines[target];
    bool is_for = code->opcodes[target] == FOR_ITER || code->opcodes[target] == GET_ANEXT;
    if (there < 0 || (here < 0 && !is_for))
        return;
    int line = is_for || here > there ? there : here;
    struct planned_loop *loop = find_loop(plan, target, line, is_for);
    uint32_t left = (uint32_t)plan->spot_of[from], spot = spot_at(plan, code, target);
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
static void find_body(struct plan *plan, const struct bytecode *code, struct planned_loop *loop)
{
    for (uint32_t unit = loop->target; !loop->spot && unit < loop->last; unit++)
        if (code->lines[unit] >= 0 && code->lines[unit] != loop->line)
            loop->spot = (uint32_t)plan->spot_of[unit];
    if (loop->spot)
        return;
    loop->spot = (uint32_t)plan->spot_of[loop->target];
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

static void find_loops(struct plan *plan, const struct bytecode *code)
{
    for (uint32_t unit = 0; unit < code->units; unit++)
        if (code->targets[unit] < unit)
            add_way_back(plan, code, unit, code->targets[unit]);
    for (uint32_t index = 0; index < plan->loops; index++)
        find_body(plan, code, &plan->loop[index]);
    for (uint32_t index = 0; index < plan->loops; index++)
        find_level(plan, &plan->loop[index]);
}

/* --- costs */

enum {
    SMALL_NUMBERS = 256, /* up to this one CPython has their objects ready */
    NEAR_LINES = 127,    /* so far from the first it keeps a line's number; others are looked up in the table of locations */
};

/* Nothing falls through to what follows it. */
static bool ends_run(const struct bytecode *code, uint32_t unit)
{
    uint8_t opcode = code->opcodes[unit];
    return opcode == RETURN_VALUE || opcode == RAISE_VARARGS || opcode == JUMP_BACKWARD || opcode == RERAISE;
}

/* What the instructions of a line take from a spot on. Of those that a jump passes over, half are thought to run. */
static double cost_of_run(const struct bytecode *code, const struct spot *spot)
{
    double ticks = 0, share = 1;
    uint32_t passed = 0;
    for (uint32_t unit = spot->instruction; unit < code->units && code->lines[unit] == spot->line; unit++) {
        share = unit < passed ? share : 1;
        ticks += share * lines.costs.instruction[code->opcodes[unit]];
        uint32_t target = ends_run(code, unit) ? NO_JUMP : code->targets[unit];
        bool passes = code->opcodes[unit] != FOR_ITER && (target == NO_JUMP ? ends_run(code, unit) : target > unit);
        if (passes && target > passed) {
            share = unit < passed ? share : 0.5;
            passed = target;
        }
    }
    return ticks;
}

static double cost_of_instructions(const struct bytecode *code, uint32_t until, double each)
{
    double ticks = 0;
    for (uint32_t unit = 0; unit < until && each > 0; unit++)
        ticks += code->opcodes[unit] == CACHE ? 0 : each;
    return ticks;
}

static uint32_t whole_ticks(double ticks)
{
    return ticks < 0 ? 0 : ticks < UINT32_MAX / 2 ? (uint32_t)ticks : UINT32_MAX / 2;
}

/* What follows the event in its own line, or what goes before it. */
static uint32_t cost_of_spot(const struct bytecode *code, const struct spot *spot, int first_line)
{
    double far = spot->line - first_line > NEAR_LINES ? lines.costs.far : 0;
    return whole_ticks(cost_of_run(code, spot) + cost_of_instructions(code, spot->instruction, far));
}

static void add_flags_and_costs(struct plan *plan, const struct bytecode *code, int first_line)
{
    plan->line_ticks = (uint64_t)(first_line > SMALL_NUMBERS ? lines.costs.high_line : lines.costs.line);
    for (uint32_t index = 0; index < plan->spots; index++)
        plan->spot[index].cost = cost_of_spot(code, &plan->spot[index], first_line);
    for (uint32_t unit = 0; unit < plan->units; unit++) {
        const struct spot *spot = &plan->spot[plan->spot_of[unit]];
        plan->spot_of[unit] |= spot->flags << SPOT_FLAGS | (uint64_t)spot->cost << SPOT_COST;
    }
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

static uint32_t count_ways_back(const struct bytecode *code)
{
    uint32_t count = 0;
    for (uint32_t unit = 0; unit < code->units; unit++)
        count += code->targets[unit] < unit;
    return count;
}

static struct plan *plan_bytecode(const struct bytecode *code, int first_line)
{
    uint32_t ways_back = count_ways_back(code);
    struct plan *plan = calloc(1, sizeof *plan + code->units * sizeof *plan->spot_of);
    if (!plan)
        return NULL;
    plan->units = code->units;
    plan->spot = malloc((code->units + ways_back + 1) * sizeof *plan->spot);
    plan->loop = malloc((ways_back + 1) * sizeof *plan->loop);
    if (!plan->spot || !plan->loop) {
        plan_free(plan);
        return NULL;
    }
    find_spots(plan, code, first_line);
    find_loops(plan, code);
    add_flags_and_costs(plan, code, first_line);
    return plan;
}

/* NULL where memory is short. An exception must not be set. */
static struct plan *plan_of(PyCodeObject *code)
{
    struct bytecode bytecode;
    struct plan *plan = bytecode_read(&bytecode, code) ? plan_bytecode(&bytecode, code->co_firstlineno) : NULL;
    bytecode_free(&bytecode);
    return plan;
}
