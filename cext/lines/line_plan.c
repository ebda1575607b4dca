#include "lines/line_plan.h"

#include <stdlib.h>

/* --- spots */

static void add_spot(struct plan *plan, const struct bytecode *code, uint32_t unit)
{
    bool is_untold = is_line_untold(code, unit);
    plan->spot[plan->spots] = (struct spot){.line = code->lines[unit], .instruction = unit, .is_untold = is_untold};
    plan->has_untold |= is_untold;
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

/* Where the instruction at the head of a long loop has a long argument, the way back leads to that. */
static bool is_head_of_for(const struct bytecode *code, uint32_t unit)
{
    while (code->opcodes[unit] == EXTENDED_ARG && unit + 1 < code->units)
        unit++;
    return code->opcodes[unit] == FOR_ITER || code->opcodes[unit] == GET_ANEXT;
}

static void add_way_back(struct plan *plan, const struct bytecode *code, uint32_t from, uint32_t target)
{
    int here = code->lines[from], there = code->lines[target];
    bool is_for = is_head_of_for(code, target);
    if (there < 0 || (here < 0 && !is_for))
        return;
    int line = is_for || here > there ? there : here;
    struct planned_loop *loop = find_loop(plan, target, line, is_for);
    uint32_t left = (uint32_t)plan->spot_of[from], spot = spot_at(plan, code, target);
    if (loop->last < from)
        loop->last = from;
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

/* A jump back is of a loop where there is no other way to it than through what it leads to. The compiler puts handlers of exceptions
   behind the rest of a function, from where such a jump leads back to what follows them. */
static bool is_of_loop(const struct bytecode *code, uint32_t unit)
{
    return code->targets[unit] < unit && !bytecode_reaches(code, unit, code->targets[unit]);
}

static bool uses_at_once(uint8_t opcode)
{
    switch (opcode) {
    GENERATOR_USES(CASE)
        return true;
    default:
        return false;
    }
}

/* The compiler's loop over the generator expression in `any(x for x in values)`, which gives what it yields no name: its passes are
   those of the generator expression. */
static bool is_compilers(const struct bytecode *code, uint32_t head)
{
    while (code->opcodes[head] == EXTENDED_ARG && head + 1 < code->units)
        head++;
    uint32_t body = next_instruction(code, head);
    return code->opcodes[head] == FOR_ITER && body < code->units && uses_at_once(code->opcodes[body]);
}

static void drop_compilers(struct plan *plan, const struct bytecode *code)
{
    uint32_t found = plan->loops;
    plan->loops = 0;
    for (uint32_t index = 0; index < found; index++)
        if (!is_compilers(code, plan->loop[index].target))
            plan->loop[plan->loops++] = plan->loop[index];
}

/* A loop's way back, or that of a handler: where a `with` of several managers suppresses an exception, the inner one leads back to the
   end of the outer one. A trace function is told of both. */
static bool leads_back_in_line(const struct bytecode *code, uint32_t unit)
{
    uint32_t target = code->targets[unit];
    return target < unit && code->lines[unit] >= 0 && code->lines[unit] == code->lines[target];
}

static void find_loops(struct plan *plan, const struct bytecode *code)
{
    for (uint32_t unit = 0; unit < code->units; unit++) {
        plan->ways_back_in_line |= leads_back_in_line(code, unit);
        if (is_of_loop(code, unit))
            add_way_back(plan, code, unit, code->targets[unit]);
    }
    drop_compilers(plan, code);
    for (uint32_t index = 0; index < plan->loops; index++)
        find_body(plan, code, &plan->loop[index]);
    for (uint32_t index = 0; index < plan->loops; index++)
        find_level(plan, &plan->loop[index]);
}

/* --- the beginning */

static bool is_jumped_to(const struct bytecode *code, uint32_t target)
{
    for (uint32_t unit = 0; unit < code->units; unit++)
        if (code->targets[unit] == target || code->handlers[unit] == target)
            return true;
    return false;
}

/* Where the instruction directly after RESUME begins a line of its own, and nothing jumps there, its line event says that the function
   begins. One that shares RESUME's line (a lambda, a generator expression) has no such event once RESUME is specialised. */
static void find_beginning(struct plan *plan, const struct bytecode *code)
{
    uint32_t unit = 0;
    while (unit < code->units && code->opcodes[unit] != RESUME)
        unit++;
    unit++;
    if (HAS_MONITORING && unit < code->units && code->lines[unit] >= 0 &&
        code->lines[unit] != code->lines[unit - 1] && !is_line_untold(code, unit) && !is_jumped_to(code, unit))
        plan->begin = unit;
}

/* --- the plan */

static void add_flags(struct plan *plan)
{
    for (uint32_t unit = 0; unit < plan->units; unit++)
        plan->spot_of[unit] |= plan->spot[plan->spot_of[unit]].flags << SPOT_FLAGS;
}

void plan_free(struct plan *plan)
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
    add_flags(plan);
    find_beginning(plan, code);
    plan_add_costs(plan, code, first_line);
    return plan;
}

struct plan *plan_of(PyCodeObject *code)
{
    struct bytecode bytecode;
    struct plan *plan = bytecode_read(&bytecode, code) ? plan_bytecode(&bytecode, code->co_firstlineno) : NULL;
    bytecode_free(&bytecode);
    return plan;
}
