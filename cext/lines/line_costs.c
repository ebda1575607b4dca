/* What the interpreter takes for the event of each spot, as calibrated (struct line_costs). */
#include "lines/line_plan.h"

#include <string.h>

/* Those that cost more while lines are traced than other instructions. */
#if HAS_MONITORING
#define CALIBRATED_INSTRUCTIONS(X) X(LOAD_GLOBAL) X(FOR_ITER) X(BINARY_OP) X(CALL) X(LOAD_ATTR)
#else
#define CALIBRATED_INSTRUCTIONS(X)                                                                           \
    X(FOR_ITER) X(LOAD_GLOBAL) X(LOAD_ATTR) X(STORE_ATTR) X(LOAD_METHOD) X(BINARY_SUBSCR) X(STORE_SUBSCR)    \
    X(CALL) X(BINARY_OP) X(COMPARE_OP) X(BEFORE_WITH)                                                        \
    X(JUMP_BACKWARD) X(POP_JUMP_BACKWARD_IF_TRUE) X(POP_JUMP_BACKWARD_IF_FALSE)
#endif

/* So far from the first CPython keeps a line's number; others are looked up in the table of locations. */
enum { NEAR_LINES = 127 };

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
        uint32_t target = ends_run(code, unit) || code->opcodes[unit] == SEND ? NO_JUMP : code->targets[unit];
        bool passes = code->opcodes[unit] != FOR_ITER && (target == NO_JUMP ? ends_run(code, unit) : target > unit);
        if (passes && target > passed) {
            share = unit < passed ? share : 0.5;
            passed = target;
        }
    }
    return ticks;
}

/* From 3.12 on the first instruction of a line is never a specialised one while it is told. */
static double cost_of_first(const struct bytecode *code, const struct spot *spot)
{
    bool is_run = spot->instruction < code->units && code->lines[spot->instruction] == spot->line;
    return is_run ? lines.costs.instruction[code->opcodes[spot->instruction]] : 0;
}

/* The processor predicts less well what follows a branch. */
static double cost_of_branch(const struct bytecode *code, const struct spot *spot)
{
    for (uint32_t unit = spot->instruction; unit < code->units && code->lines[unit] == spot->line; unit++)
        if (code->opcodes[unit] != FOR_ITER && is_conditional(code->opcodes[unit]))
            return (double)lines.costs.branch;
    return 0;
}

static double cost_of_instructions(const struct bytecode *code, const struct spot *spot)
{
    return (ASKS_AT_INSTRUCTIONS ? cost_of_run(code, spot) : cost_of_first(code, spot)) + cost_of_branch(code, spot);
}

static double cost_of_far(const struct bytecode *code, uint32_t until, double each)
{
    double ticks = 0;
    for (uint32_t unit = 0; unit < until && each > 0; unit++)
        ticks += code->opcodes[unit] == CACHE ? 0 : each;
    return ticks / FAR_STEP;
}

static uint16_t whole_ticks(double ticks)
{
    return ticks < 0 ? 0 : ticks < UINT16_MAX ? (uint16_t)ticks : UINT16_MAX;
}

static double cost_of_event(const struct bytecode *code, const struct spot *spot, int first_line)
{
    bool is_far = spot->line - first_line > NEAR_LINES;
    double line = (double)(NUMBERS_ARE_MADE && spot->line > SMALL_NUMBERS ? lines.costs.high_line : lines.costs.line);
    return line + (is_far ? cost_of_far(code, spot->instruction, (double)lines.costs.far) : 0);
}

void plan_add_costs(struct plan *plan, const struct bytecode *code, int first_line)
{
    for (uint32_t index = 0; index < plan->spots; index++) {
        struct spot *spot = &plan->spot[index];
        spot->ticks_before = whole_ticks(cost_of_event(code, spot, first_line));
        spot->ticks_after = whole_ticks(cost_of_instructions(code, spot));
    }
    for (uint32_t unit = 0; unit < plan->units; unit++) {
        const struct spot *spot = &plan->spot[plan->spot_of[unit] & SPOT_NUMBER];
        plan->spot_of[unit] |= (uint64_t)spot->ticks_before << SPOT_BEFORE | (uint64_t)spot->ticks_after << SPOT_AFTER;
    }
}

/* --- what is calibrated, by name */

#define NAMED_COST(name, meaning) {#name, &lines.costs.name},
#define NAMED_INSTRUCTION(opcode) {#opcode, opcode},

static const struct {
    const char *name;
    int64_t *ticks;
} costs[] = {LINE_COSTS(NAMED_COST)};

static const struct {
    const char *name;
    uint8_t opcode;
} instructions[] = {CALIBRATED_INSTRUCTIONS(NAMED_INSTRUCTION)};

enum { COSTS = sizeof costs / sizeof *costs, INSTRUCTIONS = sizeof instructions / sizeof *instructions };

static bool has_own_cost(int opcode)
{
    for (int index = 0; index < INSTRUCTIONS; index++)
        if (instructions[index].opcode == opcode)
            return true;
    return opcode == CACHE;
}

static void set_plain_instructions(double ticks)
{
    for (int opcode = 0; opcode < 256; opcode++)
        if (!has_own_cost(opcode))
            lines.costs.instruction[opcode] = ticks;
}

void line_cost_set(const char *name, double ticks)
{
    for (int index = 0; index < COSTS; index++)
        if (strcmp(costs[index].name, name) == 0)
            *costs[index].ticks = (int64_t)(ticks < 0 ? ticks - 0.5 : ticks + 0.5);
    for (int index = 0; index < INSTRUCTIONS; index++)
        if (strcmp(instructions[index].name, name) == 0)
            lines.costs.instruction[instructions[index].opcode] = ticks;
    if (strcmp(name, PLAIN_INSTRUCTION) == 0)
        set_plain_instructions(ticks);
}
