/* Code objects under line trace: where their lines are counted. What is known of one hangs on its extra slot and is freed
   with it. */
#pragma once

#include <stddef.h>

#include "cpython/known_code.h"
#include "lines/lines.h"
#include "lines/line_plan.h"
#include "cpython/tasks.h"

struct traced_code {
    struct known_code is;
    uint32_t coroutine;
    uint32_t observed; /* its own events are asked for (from 3.12 on) */
    struct {
        uint32_t serial, trace;
    } left_out; /* of these files' trace: there was no room */
    struct plan *plan;
    struct line_table *tables;
};

/* --- code objects */

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

static struct known_codes traced_codes = {
    .index = -1,
    .bytes = sizeof(struct traced_code),
    .meet = meet_code,
    .let_go = let_go_of_code,
};

static struct traced_code *first_traced_code(void)
{
    return (struct traced_code *)traced_codes.first;
}

static struct traced_code *next_traced_code(struct traced_code *known)
{
    return (struct traced_code *)known->is.next;
}

/* What is known of a code object; NULL where memory is short. */
static inline struct traced_code *traced_code_of(PyCodeObject *code, frame *here)
{
    return (struct traced_code *)known_code_of(&traced_codes, code, here);
}

static int traced_begin(void)
{
    return known_codes_begin(&traced_codes);
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
    known->plan = known->plan ? known->plan : plan_of(known->is.code);
    if (!known->plan || is_left_out(known))
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

/* Where a function's lines are counted for an owner, found first from now on; NULL where there is no room. What is of other
   files is dropped. */
static __attribute__((noinline)) struct line_table *other_table(struct traced_code *known, uint32_t owner, frame *here)
{
    PyObject *type, *value, *traceback;
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
    PyErr_Fetch(&type, &value, &traceback);
    found = found ? found : new_line_table(known, owner, here);
    PyErr_Restore(type, value, traceback);
    if (found) {
        found->next = known->tables;
        known->tables = found;
    }
    return found;
}

/* What the lines of a code object were charged so far, and how often they were executed. */
static void count_code(PyObject *code, int64_t *ticks, uint64_t *executed)
{
    struct traced_code *known = code_extra((PyCodeObject *)code, traced_codes.index);
    *ticks = 0;
    *executed = 0;
    for (struct line_table *table = known ? known->tables : NULL; table; table = table->next)
        for (uint32_t index = 0; index < known->plan->spots; index++) {
            *ticks += table->lines[index].ticks;
            *executed += table->lines[index].executed;
        }
}

/* Forget all tables: what was counted in them was not in earnest, or their files are done. */
static void forget_tables(void)
{
    for (struct traced_code *known = first_traced_code(); known; known = next_traced_code(known))
        tables_free(known);
}
