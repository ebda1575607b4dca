#include "lines/traced_code.h"

static void tables_free(struct traced_code *known)
{
    while (known->tables) {
        struct line_table *table = known->tables;
        known->tables = table->next;
        lines_table_free(table);
    }
}

static void let_go_of_code(struct known_code *code)
{
    struct traced_code *known = (struct traced_code *)code;
    tables_free(known);
    plan_free(known->plan);
}

static void meet_code(struct known_code *code)
{
    struct traced_code *known = (struct traced_code *)code;
    known->coroutine = (code->code->co_flags & (CO_COROUTINE | CO_ASYNC_GENERATOR | CO_ITERABLE_COROUTINE)) != 0;
}

struct known_codes traced_codes = {
    .index = -1,
    .bytes = sizeof(struct traced_code),
    .meet = meet_code,
    .let_go = let_go_of_code,
};

struct plan *plan_traced(struct traced_code *known)
{
    known->plan = known->plan ? known->plan : plan_of(known->is.code);
    return known->plan;
}

/* --- tables */

static void fill_lines(struct line_table *table, const struct plan *plan)
{
    for (uint32_t index = 0; index < plan->spots; index++) {
        table->lines[index].line = (uint32_t)(plan->spot[index].line > 0 ? plan->spot[index].line : 0);
        __atomic_store_n(&table->lines[index].function, table->number, __ATOMIC_RELEASE);
    }
    for (uint32_t index = 0; index < plan->loops; index++) {
        table->loops[index].line = (uint32_t)plan->loop[index].line;
        table->loops[index].level = plan->loop[index].level;
        table->loops[index].spot = table->first + plan->loop[index].spot;
        table->loops[index].by_back = plan->loop[index].in_one_line;
        __atomic_store_n(&table->loops[index].function, table->number, __ATOMIC_RELEASE);
    }
}

static bool is_left_out(const struct traced_code *known)
{
    return lines.trace && known->left_out.trace == lines.trace && known->left_out.serial == lines.serial;
}

static void leave_out(struct traced_code *known)
{
    known->left_out.trace = lines.trace;
    known->left_out.serial = lines.serial;
}

static struct line_table *new_line_table(struct traced_code *known, uint32_t owner, frame *here)
{
    if (!plan_traced(known) || is_left_out(known))
        return NULL;
    known_code_name(&known->is, here);
    struct line_shape shape = {
        .kind = FUNCTION_CODE,
        .file = known->is.file,
        .function = known->is.function,
        .module = known->is.module,
        .first_line = (uint32_t)known->is.code->co_firstlineno,
        .own = known->is.own,
        .spots = known->plan->spots,
        .loops = known->plan->loops,
    };
    struct line_table *table = lines_table(owner, &shape);
    if (table)
        fill_lines(table, known->plan);
    else
        leave_out(known);
    return table;
}

/* The table of the owner is taken out of the list, and those of other files are dropped. */
static struct line_table *take_table(struct traced_code *known, uint32_t owner)
{
    struct line_table *found = NULL;
    for (struct line_table **place = &known->tables; *place && !found;) {
        struct line_table *table = *place;
        bool stale = table->serial != lines.serial;
        if (stale || line_table_is_of(table, owner))
            *place = table->next;
        else
            place = &table->next;
        if (stale)
            lines_table_free(table);
        else if (line_table_is_of(table, owner))
            found = table;
    }
    return found;
}

struct line_table *other_table(struct traced_code *known, uint32_t owner, frame *here)
{
    struct raised raised = raised_keep();
    struct line_table *found = take_table(known, owner);
    found = found ? found : new_line_table(known, owner, here);
    raised_restore(raised);
    if (found) {
        found->next = known->tables;
        known->tables = found;
    }
    return found;
}

static void count_table(const struct line_table *table, uint32_t spots, int64_t *ticks, int64_t *event_ticks)
{
    for (uint32_t index = 0; index < spots; index++) {
        *ticks += table->lines[index].ticks;
        *event_ticks += table->lines[index].event_ticks;
    }
}

void count_ticks(PyObject *code, int64_t *ticks, int64_t *event_ticks)
{
    *ticks = *event_ticks = 0;
    for (struct traced_code *known = first_traced_code(); known; known = next_traced_code(known))
        for (struct line_table *table = known->tables; table; table = table->next)
            if (!code || (PyObject *)known->is.code == code)
                count_table(table, known->plan->spots, ticks, event_ticks);
}

static void forget(struct traced_code *known)
{
    tables_free(known);
    plan_free(known->plan);
    known->plan = NULL;
}

void forget_plans(void)
{
    for (struct traced_code *known = first_traced_code(); known; known = next_traced_code(known))
        forget(known);
}
