#include "coverage/covered_code.h"

#include <stdlib.h>

struct covered_plan *plan_covered(struct covered_code *known)
{
    struct bytecode code;
    if (!known->plan) {
        known->plan = bytecode_read(&code, known->is.code) ? covered_plan_of(&code) : NULL;
        bytecode_free(&code);
    }
    return known->plan;
}

/* --- tables */

static void fill_places(struct coverage_table *table, const struct covered_plan *plan)
{
    for (uint32_t index = 0; index < plan->places; index++) {
        struct covered_place *place = place_in(table, index);
        place->line = plan->place[index].line;
        place->column = plan->place[index].column;
        __atomic_store_n(&place->code, table->piece[index / PIECE_PLACES].number, __ATOMIC_RELEASE);
    }
}

static void fill_branches(struct coverage_table *table, const struct covered_plan *plan)
{
    for (uint32_t index = 0; index < plan->branches; index++) {
        const struct planned_branch *planned = &plan->branch[index];
        struct covered_branch *branch = branch_in(table, index);
        branch->origin = place_number(table, planned->origin - 1);
        branch->next = planned->next ? place_number(table, planned->next - 1) : 0;
        branch->other = planned->other ? place_number(table, planned->other - 1) : 0;
        __atomic_store_n(&branch->code, table->piece[index / PIECE_BRANCHES].number, __ATOMIC_RELEASE);
    }
}

static struct coverage_shape shape_of(const struct covered_code *known, uint32_t context)
{
    return (struct coverage_shape){
        .file = known->is.file,
        .function = known->is.function,
        .module = known->is.module,
        .first_line = (uint32_t)known->is.code->co_firstlineno,
        .own = known->is.own,
        .context = context,
        .has_columns = known->plan->has_columns,
        .places = known->plan->places,
        .branches = known->plan->branches,
    };
}

static struct coverage_table *new_coverage_table(struct covered_code *known, uint32_t context, frame *here)
{
    const struct covered_plan *plan = plan_covered(known);
    if (!plan || !plan->places || known->left_out == coverage.serial)
        return NULL;
    known_code_name(&known->is, here);
    struct coverage_shape shape = shape_of(known, context);
    struct coverage_table *table = coverage_table(&shape);
    if (!table) {
        known->left_out = coverage.serial;
        return NULL;
    }
    fill_places(table, plan);
    fill_branches(table, plan);
    return table;
}

/* Take the table for a context out of the list, or NULL; tables of other files are dropped. */
static struct coverage_table *take_table(struct covered_code *known, uint32_t context)
{
    for (struct coverage_table **at = &known->tables; *at;) {
        struct coverage_table *table = *at;
        bool is_stale = table->serial != coverage.serial;
        if (!is_stale && table->context != context) {
            at = &table->next;
            continue;
        }
        *at = table->next;
        if (!is_stale)
            return table;
        free(table);
    }
    return NULL;
}

struct coverage_table *other_coverage_table(struct covered_code *known, uint32_t context, frame *here)
{
    struct coverage_table *found = take_table(known, context);
    struct raised raised = raised_keep();
    found = found ? found : new_coverage_table(known, context, here);
    raised_restore(raised);
    if (found) {
        found->next = known->tables;
        known->tables = found;
    }
    return found;
}

static void let_go_of_covered(struct known_code *code)
{
    struct covered_code *known = (struct covered_code *)code;
    while (known->tables) {
        struct coverage_table *table = known->tables;
        known->tables = table->next;
        free(table);
    }
    covered_plan_free(known->plan);
    free(known->probes);
    Py_XDECREF(known->with_probes);
}

struct known_codes covered_codes = {
    .index = -1,
    .bytes = sizeof(struct covered_code),
    .let_go = let_go_of_covered,
};
