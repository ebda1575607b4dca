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

/* Numbers count from 1. */
static void add_branch(struct covered_plan *plan, struct planned_branch planned)
{
    plan->branch[plan->branches++] = planned;
    plan->branch_of[planned.unit] = plan->branches;
}

/* Where exceptions in this instruction lead to; the units before it may extend its argument. */
static uint32_t handler_of(const struct bytecode *code, uint32_t unit)
{
    uint32_t handler = code->handlers[unit];
    while (handler < code->units && code->opcodes[handler] == EXTENDED_ARG)
        handler++;
    return handler;
}

/* An `async for` repeats SEND until the next value is there; then SEND jumps to the beginning of the body. The handler of
   its end may have the position of what it iterates over, so the statement is where the next value is requested. */
static void add_awaited(struct covered_plan *plan, const struct bytecode *code, uint32_t asks)
{
    uint32_t last = handler_of(code, asks), send = asks;
    while (send < code->units && code->opcodes[send] != SEND)
        send++;
    uint32_t body = send < code->units ? code->targets[send] : NO_JUMP;
    if (last >= code->units || code->opcodes[last] != END_ASYNC_FOR || body == NO_JUMP || !plan->place_of[asks])
        return;
    uint32_t behind = next_instruction(code, last);
    plan->has_parts = true;
    add_branch(plan, (struct planned_branch){
        .unit = last,
        .origin = plan->place_of[asks],
        .next = place_behind(plan, code, body, asks),
        .other = place_behind(plan, code, behind, last), /* a return that nobody wrote has its position */
        .next_unit = body,
        .target = behind,
        .depth = code->depths[asks],
        .is_awaited = true,
    });
    plan->branch_of[body] = plan->branches;
}

static void add_jump(struct covered_plan *plan, const struct bytecode *code, uint32_t unit)
{
    uint32_t next = next_instruction(code, unit), target = code->targets[unit];
    if (target == NO_JUMP || !plan->place_of[unit])
        return;
    add_branch(plan, (struct planned_branch){
        .unit = unit,
        .origin = plan->place_of[unit],
        .next = place_behind(plan, code, next, unit),
        .other = place_behind(plan, code, target, unit),
        .next_unit = next,
        .target = target,
    });
}

void find_branches(struct covered_plan *plan, const struct bytecode *code)
{
    for (uint32_t unit = 0; unit < code->units; unit++)
        if (code->opcodes[unit] == GET_ANEXT)
            add_awaited(plan, code, unit);
        else if (is_conditional(code->opcodes[unit]))
            add_jump(plan, code, unit);
}

static const struct planned_branch *branch_of_unit(const struct covered_plan *plan, uint32_t unit)
{
    uint32_t number = plan->branches && unit < plan->units ? plan->branch_of[unit] : 0;
    return number ? &plan->branch[number - 1] : NULL;
}

const struct planned_branch *branch_at(const struct covered_plan *plan, uint32_t unit)
{
    const struct planned_branch *branch = branch_of_unit(plan, unit);
    return branch && branch->unit == unit ? branch : NULL;
}

const struct planned_branch *awaited_at(const struct covered_plan *plan, uint32_t unit)
{
    const struct planned_branch *branch = branch_of_unit(plan, unit);
    return branch && branch->is_awaited ? branch : NULL;
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
