#include "coverage/covered_plan.h"

/* What a statement ends with, in all versions. */
#define STATEMENT_ENDS(X) \
    X(STORE_NAME) X(STORE_FAST) X(STORE_GLOBAL) X(STORE_DEREF) X(STORE_ATTR) X(STORE_SUBSCR) \
    X(DELETE_NAME) X(DELETE_FAST) X(DELETE_GLOBAL) X(DELETE_DEREF) X(DELETE_ATTR) X(DELETE_SUBSCR) \
    X(POP_TOP) X(NOP) X(RAISE_VARARGS) X(JUMP_FORWARD) X(JUMP_BACKWARD)

static bool ends_part(uint8_t opcode)
{
    switch (opcode) {
    STATEMENT_ENDS(CASE)
    ENDS_OF_VERSION(CASE)
    RETURNS(CASE)
        return true;
    default:
        return is_conditional(opcode);
    }
}

/* Does another place of the same line begin here? All of the one before ends at `reach`. */
static bool is_part(const struct bytecode *code, uint32_t unit, uint8_t before, int reach)
{
    return code->columns[unit] != NO_COLUMN && reach != NO_COLUMN && code->columns[unit] >= reach && ends_part(before);
}

static void add_place(struct covered_plan *plan, const struct bytecode *code, uint32_t unit)
{
    plan->has_columns |= code->columns[unit] != NO_COLUMN;
    plan->place[plan->places++] = (struct covered_place){
        .line = (uint32_t)code->lines[unit],
        .column = (uint32_t)(code->columns[unit] + 1),
    };
}

/* Instructions before RESUME prepare the frame, and belong to no line. A generator has begun with the one after it
   was made. */
static uint32_t first_unit(const struct bytecode *code)
{
    uint32_t unit = code->units;
    while (unit && code->opcodes[unit - 1] != RETURN_GENERATOR)
        unit--;
    while (unit < code->units && code->opcodes[unit] != RESUME)
        unit++;
    return unit < code->units ? next_instruction(code, unit) : 0;
}

/* The position of the current place, and its last instruction. */
struct looked_at {
    int line, column;
    int reach; /* where all of it ends */
    uint8_t before;
    bool is_left; /* the instruction before does not go on to the next */
};

/* The compiler repeats short code, as a `return` behind a loop that ends in two ways. Nothing comes from the one to the other. */
static bool is_repeated(const struct bytecode *code, uint32_t unit, const struct looked_at *at)
{
    return at->is_left && code->columns[unit] == at->column;
}

/* Does a place begin with this instruction? */
static bool begins_place(struct covered_plan *plan, const struct bytecode *code, uint32_t unit, const struct looked_at *at)
{
    if (code->lines[unit] <= 0)
        return false;
    if (code->lines[unit] != at->line) {
        plan->has_parts |= is_line_untold(code, unit);
        return true;
    }
    if (is_repeated(code, unit, at))
        return true;
    bool begins = !is_behind(code->opcodes[unit]) && is_part(code, unit, at->before, at->reach);
    plan->has_parts |= begins;
    return begins;
}

/* Code that begins before the place (a loop, a `with`, on 3.11 a condition) has the position of everything inside
   it. */
static void reach_farther(struct looked_at *at, const struct bytecode *code, uint32_t unit)
{
    bool is_within = !is_conditional(code->opcodes[unit]) && code->columns[unit] >= at->column;
    if (is_within && code->ends[unit] > at->reach)
        at->reach = code->ends[unit];
}

void find_places(struct covered_plan *plan, const struct bytecode *code)
{
    struct looked_at at = {.line = -1, .column = NO_COLUMN, .reach = NO_COLUMN, .before = CACHE};
    for (uint32_t unit = first_unit(code); unit < code->units; unit++) {
        if (begins_place(plan, code, unit, &at)) {
            add_place(plan, code, unit);
            at.reach = NO_COLUMN;
            at.column = code->columns[unit];
        }
        at.line = code->lines[unit];
        plan->place_of[unit] = at.line <= 0 ? 0 : plan->places;
        reach_farther(&at, code, unit);
        if (is_behind(code->opcodes[unit]))
            continue;
        at.before = code->opcodes[unit];
        at.is_left = never_goes_on(code, unit);
    }
}
