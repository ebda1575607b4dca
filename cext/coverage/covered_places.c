#include "coverage/covered_plan.h"

static bool ends_part(uint8_t opcode)
{
    switch (opcode) {
    case STORE_NAME:
    case STORE_FAST:
    case STORE_GLOBAL:
    case STORE_DEREF:
    case STORE_ATTR:
    case STORE_SUBSCR:
    case DELETE_NAME:
    case DELETE_FAST:
    case DELETE_GLOBAL:
    case DELETE_DEREF:
    case DELETE_ATTR:
    case DELETE_SUBSCR:
    case POP_TOP:
    case NOP:
    case RETURN_VALUE:
    case RAISE_VARARGS:
    case JUMP_FORWARD:
    case JUMP_BACKWARD:
#ifdef RETURN_CONST
    case RETURN_CONST:
#endif
#if PY_VERSION_HEX >= 0x030c0000
    case STORE_SLICE:
#endif
#if PY_VERSION_HEX >= 0x030d0000
    case STORE_FAST_STORE_FAST:
    case STORE_FAST_LOAD_FAST:
#endif
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

/* What comes before RESUME makes the frame ready, and is of no line. */
static uint32_t first_unit(const struct bytecode *code)
{
    uint32_t unit = 0;
    while (unit < code->units && code->opcodes[unit] != RESUME)
        unit++;
    return unit < code->units ? unit + 1 : 0;
}

void find_places(struct covered_plan *plan, const struct bytecode *code)
{
    int line = -1, reach = NO_COLUMN, column = NO_COLUMN; /* from where to where the place stands */
    uint8_t before = CACHE;
    for (uint32_t unit = first_unit(code); unit < code->units; unit++) {
        uint8_t opcode = code->opcodes[unit];
        bool begins = code->lines[unit] > 0 && code->lines[unit] != line;
        if (opcode != CACHE && !begins && code->lines[unit] > 0 && is_part(code, unit, before, reach))
            begins = plan->has_parts = true;
        if (begins) {
            add_place(plan, code, unit);
            reach = NO_COLUMN;
            column = code->columns[unit];
        }
        line = code->lines[unit];
        plan->place_of[unit] = line <= 0 ? 0 : plan->places;
        /* What begins before the place (a loop, a `with`, on 3.11 a condition) stands where all does that is inside of it. */
        if (!is_conditional(opcode) && code->columns[unit] >= column)
            reach = code->ends[unit] > reach ? code->ends[unit] : reach;
        before = opcode == CACHE ? before : opcode;
    }
}
