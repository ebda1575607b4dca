/* What the interpreter takes for the event of each spot, as calibrated (struct line_costs). */
#include "lines/line_plan.h"

#include <string.h>

/* Those that cost more while lines are traced than other instructions. */
#if HAS_MONITORING
#define CALIBRATED_INSTRUCTIONS(X) X(LOAD_GLOBAL) X(FOR_ITER)
#else
#define CALIBRATED_INSTRUCTIONS(X) \
    X(FOR_ITER) X(LOAD_GLOBAL) X(LOAD_ATTR) X(STORE_ATTR) X(LOAD_METHOD) X(BINARY_SUBSCR) X(STORE_SUBSCR) X(CALL)
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
        uint32_t target = ends_run(code, unit) ? NO_JUMP : code->targets[unit];
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

static double cost_of_instructions(const struct bytecode *code, uint32_t until, double each)
{
    double ticks = 0;
    for (uint32_t unit = 0; unit < until && each > 0; unit++)
        ticks += code->opcodes[unit] == CACHE ? 0 : each;
    return ticks;
}

static uint16_t whole_ticks(double ticks)
{
    return ticks < 0 ? 0 : ticks < UINT16_MAX ? (uint16_t)ticks : UINT16_MAX;
}

static void find_ticks(struct spot *spot, const struct bytecode *code, int first_line)
{
    double far = spot->line - first_line > NEAR_LINES ? lines.costs.far : 0;
    spot->ticks_before = whole_ticks(cost_of_instructions(code, spot->instruction, far));
    spot->ticks_after = whole_ticks(ASKS_AT_INSTRUCTIONS ? cost_of_run(code, spot) : cost_of_first(code, spot));
}

void plan_add_costs(struct plan *plan, const struct bytecode *code, int first_line)
{
    plan->line_ticks = first_line > SMALL_NUMBERS ? lines.costs.high_line : lines.costs.line;
    for (uint32_t index = 0; index < plan->spots; index++)
        find_ticks(&plan->spot[index], code, first_line);
    for (uint32_t unit = 0; unit < plan->units; unit++) {
        const struct spot *spot = &plan->spot[plan->spot_of[unit] & SPOT_NUMBER];
        plan->spot_of[unit] |= (uint64_t)spot->ticks_before << SPOT_BEFORE | (uint64_t)spot->ticks_after << SPOT_AFTER;
    }
}

#define NAMED(opcode) {#opcode, opcode},

int opcode_named(const char *name)
{
    static const struct {
        const char *name;
        int opcode;
    } known[] = {CALIBRATED_INSTRUCTIONS(NAMED)};
    for (size_t index = 0; index < sizeof known / sizeof *known; index++)
        if (strcmp(known[index].name, name) == 0)
            return known[index].opcode;
    return CACHE;
}
