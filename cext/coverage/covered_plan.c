#include "coverage/covered_plan.h"

#include <stdlib.h>

void covered_plan_free(struct covered_plan *plan)
{
    if (!plan)
        return;
    free(plan->place);
    free(plan->branch);
    free(plan->branch_of);
    free(plan);
}

static uint32_t count_conditions(const struct bytecode *code)
{
    uint32_t count = 0;
    for (uint32_t unit = 0; unit < code->units; unit++)
        count += is_conditional(code->opcodes[unit]) || code->opcodes[unit] == GET_ANEXT;
    return count;
}

struct covered_plan *covered_plan_of(const struct bytecode *code)
{
    struct covered_plan *plan = calloc(1, sizeof *plan + code->units * sizeof *plan->place_of);
    if (!plan)
        return NULL;
    plan->units = code->units;
    plan->place = malloc((code->units + 1) * sizeof *plan->place);
    plan->branch = coverage.branches ? malloc((count_conditions(code) + 1) * sizeof *plan->branch) : NULL;
    plan->branch_of = coverage.branches ? calloc(code->units + 1, sizeof *plan->branch_of) : NULL;
    if (!plan->place || (coverage.branches && (!plan->branch || !plan->branch_of))) {
        covered_plan_free(plan);
        return NULL;
    }
    find_places(plan, code);
    if (coverage.branches)
        find_branches(plan, code);
    return plan;
}
