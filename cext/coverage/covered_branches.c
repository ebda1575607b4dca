#include "coverage/covered_plan.h"

static bool returns(uint8_t opcode)
{
    switch (opcode) {
    RETURNS(CASE)
        return true;
    default:
        return false;
    }
}

/* What follows is then not the target of a condition. */
static bool raises(uint8_t opcode)
{
    return opcode == RERAISE || opcode == RAISE_VARARGS;
}

/* The compiler gives code that nobody wrote (a function's end, a loop's jump back) the position of the jump. */
static bool stands_where(const struct bytecode *code, uint32_t unit, uint32_t jump)
{
    return code->lines[unit] < 0 || (code->lines[unit] == code->lines[jump] && code->columns[unit] <= code->columns[jump]);
}

/* The first place from here on that is not the jump's own; 0 where the code ends before, its own where it raises. */
static uint32_t place_behind(const struct covered_plan *plan, const struct bytecode *code, uint32_t unit, uint32_t jump)
{
    uint32_t own = plan->place_of[jump];
    for (uint32_t steps = 0; steps < code->units && unit < code->units; steps++) {
        uint8_t opcode = code->opcodes[unit];
        bool wrote = plan->place_of[unit] && plan->place_of[unit] != own && !stands_where(code, unit, jump);
        if (wrote || is_conditional(opcode))
            return plan->place_of[unit];
        if (returns(opcode))
            return 0;
        if (raises(opcode))
            return own;
        unit = code->targets[unit] != NO_JUMP ? code->targets[unit] : next_instruction(code, unit);
    }
    return own;
}

/* What an `async for` awaits is sent to in a circle; its body begins behind that. The last instruction is the handler of what
   ends it. */
static void add_awaited(struct covered_plan *plan, const struct bytecode *code, uint32_t last)
{
    uint32_t unit = 0;
    while (unit < last && !(code->opcodes[unit] == GET_ANEXT && code->handlers[unit] == last))
        unit++;
    uint32_t depth = code->depths[unit];
    while (unit < last && code->opcodes[unit] != JUMP_BACKWARD_NO_INTERRUPT)
        unit++;
    if (unit == last || !plan->place_of[last])
        return;
    uint32_t body = next_instruction(code, unit), behind = next_instruction(code, last);
    plan->has_awaited = plan->has_parts = true;
    plan->branch[plan->branches++] = (struct planned_branch){
        .unit = last,
        .origin = plan->place_of[last],
        .next = place_behind(plan, code, body, last),
        .other = place_behind(plan, code, behind, last),
        .next_unit = body,
        .target = behind,
        .depth = depth,
        .is_awaited = true,
    };
}

void find_branches(struct covered_plan *plan, const struct bytecode *code)
{
    for (uint32_t unit = 0; unit < code->units; unit++) {
        if (code->opcodes[unit] == END_ASYNC_FOR)
            add_awaited(plan, code, unit);
        if (!is_conditional(code->opcodes[unit]) || code->targets[unit] == NO_JUMP || !plan->place_of[unit])
            continue;
        uint32_t next = next_instruction(code, unit);
        plan->branch[plan->branches++] = (struct planned_branch){
            .unit = unit,
            .origin = plan->place_of[unit],
            .next = place_behind(plan, code, next, unit),
            .other = place_behind(plan, code, code->targets[unit], unit),
            .next_unit = next,
            .target = code->targets[unit],
        };
    }
}

const struct planned_branch *branch_at(const struct covered_plan *plan, uint32_t unit)
{
    uint32_t low = 0, high = plan->branches;
    while (low < high) {
        uint32_t middle = (low + high) / 2;
        if (plan->branch[middle].unit < unit)
            low = middle + 1;
        else
            high = middle;
    }
    return low < plan->branches && plan->branch[low].unit == unit ? &plan->branch[low] : NULL;
}

const struct planned_branch *awaited_at(const struct covered_plan *plan, uint32_t unit)
{
    for (uint32_t index = 0; plan->has_awaited && index < plan->branches; index++) {
        const struct planned_branch *branch = &plan->branch[index];
        if (branch->is_awaited && (branch->unit == unit || branch->next_unit == unit))
            return branch;
    }
    return NULL;
}

const struct planned_branch *branch_told(const struct covered_plan *plan, uint32_t unit, uint32_t to)
{
    const struct planned_branch *jump = branch_at(plan, unit);
    for (uint32_t index = 0; !jump && to == unit + 1 && index < plan->branches; index++) {
        const struct planned_branch *branch = &plan->branch[index];
        if (branch->next_unit == to || branch->target + 1 == unit)
            jump = branch;
    }
    return jump;
}
