/* Code objects under statement coverage: their places, and where it is noted that these were executed.

   A place is a run of instructions of one line, or a part of it that may be executed without the rest: what follows an
   instruction that ends a statement, or decides, and stands behind all that came before. That may divide what is one statement;
   whoever reads knows the syntax tree and puts it together again. */
#pragma once

#include "cpython/bytecode.h"
#include "coverage/coverage.h"
#include "cpython/known_code.h"

struct planned_branch {
    uint32_t unit;              /* of the jump */
    uint32_t origin;            /* the place that it stands in, from 1 */
    uint32_t next, other;       /* the places it leads to, from 1, or 0: it ends there */
    uint32_t next_unit, target; /* the instructions there */
};

struct covered_plan {
    uint32_t units, places, branches;
    bool has_parts;   /* there are lines with several places in a row */
    bool has_columns;
    struct covered_place *place;
    struct planned_branch *branch;
    uint32_t place_of[]; /* by instruction, from 1; 0: in none */
};

struct covered_code {
    struct known_code is;
    uint32_t observed;
    uint32_t left_out;           /* of the files with this serial: there was no room */
    uint32_t looked_at;          /* for probes, at this choice (coverage/probes.h) */
    struct probes *probes;       /* in this code, or NULL */
    PyCodeObject *with_probes;   /* what is executed instead, or NULL */
    struct covered_plan *plan;
    struct coverage_table *tables; /* the one used last comes first */
};

/* --- places */

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

static void find_places(struct covered_plan *plan, const struct bytecode *code)
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

/* --- branches */

static bool returns(uint8_t opcode)
{
#ifdef RETURN_CONST
    if (opcode == RETURN_CONST)
        return true;
#endif
    return opcode == RETURN_VALUE;
}

/* Where it goes on then is nothing that a condition leads to. */
static bool raises(uint8_t opcode)
{
    return opcode == RERAISE || opcode == RAISE_VARARGS;
}

/* Of what nobody wrote (the end of a function, the way back of a loop) the compiler says that it stands where the jump does. */
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

static void find_branches(struct covered_plan *plan, const struct bytecode *code)
{
    for (uint32_t unit = 0; unit < code->units; unit++) {
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

/* --- the plan */

static void covered_plan_free(struct covered_plan *plan)
{
    if (!plan)
        return;
    free(plan->place);
    free(plan->branch);
    free(plan);
}

static uint32_t count_conditions(const struct bytecode *code)
{
    uint32_t count = 0;
    for (uint32_t unit = 0; unit < code->units; unit++)
        count += is_conditional(code->opcodes[unit]);
    return count;
}

static struct covered_plan *covered_plan_of(const struct bytecode *code)
{
    struct covered_plan *plan = calloc(1, sizeof *plan + code->units * sizeof *plan->place_of);
    if (!plan)
        return NULL;
    plan->units = code->units;
    plan->place = malloc((code->units + 1) * sizeof *plan->place);
    plan->branch = coverage.branches ? malloc((count_conditions(code) + 1) * sizeof *plan->branch) : NULL;
    if (!plan->place || (coverage.branches && !plan->branch)) {
        covered_plan_free(plan);
        return NULL;
    }
    find_places(plan, code);
    if (coverage.branches)
        find_branches(plan, code);
    return plan;
}

/* Its plan, made when it is first wanted; NULL where memory is short. An exception must not be set. */
static struct covered_plan *plan_covered(struct covered_code *known)
{
    struct bytecode code;
    if (!known->plan) {
        known->plan = bytecode_read(&code, known->is.code) ? covered_plan_of(&code) : NULL;
        bytecode_free(&code);
    }
    return known->plan;
}

/* --- tables */

static void fill_table(struct coverage_table *table, const struct covered_plan *plan)
{
    for (uint32_t index = 0; index < plan->places; index++) {
        struct covered_place *place = place_in(table, index);
        place->line = plan->place[index].line;
        place->column = plan->place[index].column;
        __atomic_store_n(&place->code, table->piece[index / PIECE_PLACES].number, __ATOMIC_RELEASE);
    }
    for (uint32_t index = 0; index < plan->branches; index++) {
        const struct planned_branch *planned = &plan->branch[index];
        struct covered_branch *branch = branch_in(table, index);
        branch->origin = place_number(table, planned->origin - 1);
        branch->next = planned->next ? place_number(table, planned->next - 1) : 0;
        branch->other = planned->other ? place_number(table, planned->other - 1) : 0;
        __atomic_store_n(&branch->code, table->piece[index / PIECE_BRANCHES].number, __ATOMIC_RELEASE);
    }
}

static struct coverage_table *new_coverage_table(struct covered_code *known, uint32_t context, frame *here)
{
    const struct covered_plan *plan = plan_covered(known);
    if (!plan || !plan->places || known->left_out == coverage.serial)
        return NULL;
    known_code_name(&known->is, here);
    struct coverage_shape shape = {
        .file = known->is.file,
        .function = known->is.function,
        .module = known->is.module,
        .first_line = (uint32_t)known->is.code->co_firstlineno,
        .own = known->is.own,
        .context = context,
        .has_columns = plan->has_columns,
        .places = plan->places,
        .branches = plan->branches,
    };
    struct coverage_table *table = coverage_table(&shape);
    if (table)
        fill_table(table, plan);
    else
        known->left_out = coverage.serial;
    return table;
}

/* The table for a context, found first from now on; what lies in other files is dropped. */
static __attribute__((noinline)) struct coverage_table *other_coverage_table(struct covered_code *known, uint32_t context,
                                                                             frame *here)
{
    PyObject *type, *value, *traceback;
    struct coverage_table *found = NULL;
    for (struct coverage_table **at = &known->tables; *at && !found;) {
        struct coverage_table *table = *at;
        bool stale = table->serial != coverage.serial;
        if (stale || table->context == context)
            *at = table->next;
        else
            at = &table->next;
        if (stale)
            free(table);
        else if (table->context == context)
            found = table;
    }
    PyErr_Fetch(&type, &value, &traceback);
    found = found ? found : new_coverage_table(known, context, here);
    PyErr_Restore(type, value, traceback);
    if (found) {
        found->next = known->tables;
        known->tables = found;
    }
    return found;
}

/* Where it is to be noted now; NULL where it cannot be. */
static inline struct coverage_table *table_of(struct covered_code *known, frame *here)
{
    uint32_t context = coverage.contexts ? coverage_context() : 0;
    struct coverage_table *table = known->tables;
    if (LIKELY(table && table->serial == coverage.serial && table->context == context))
        return table;
    return other_coverage_table(known, context, here);
}

static void meet_covered(struct known_code *code)
{
    (void)code;
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

static int covered_begin(void)
{
    return known_codes_begin(sizeof(struct covered_code), meet_covered, let_go_of_covered);
}

static inline struct covered_code *covered_code_of(PyCodeObject *code, frame *here)
{
    return (struct covered_code *)known_code_of(code, here);
}

/* The place that an instruction is in, from 1, or 0. */
static inline uint32_t place_of_unit(const struct covered_plan *plan, uint32_t unit)
{
    return LIKELY(unit < plan->units) ? plan->place_of[unit] : 0;
}

/* The same, of the first instruction of a place; 0 of others. Who jumps into the middle of a part of a line has not come to
   the part, but to an end of the line's that the compiler put there. */
static inline uint32_t place_begun_by(const struct covered_plan *plan, uint32_t unit)
{
    uint32_t place = place_of_unit(plan, unit);
    return unit && place_of_unit(plan, unit - 1) == place ? 0 : place;
}

static inline void note_place(struct coverage_table *table, uint32_t place)
{
    if (place)
        place_in(table, place - 1)->executed = 1;
}

static inline void come_to(struct covered_code *known, uint32_t place, frame *here)
{
    struct coverage_table *table = coverage_is_here() ? table_of(known, here) : NULL;
    if (LIKELY(table != NULL))
        note_place(table, place);
}

/* The conditional jump that this instruction is, or NULL. */
static const struct planned_branch *branch_at(const struct covered_plan *plan, uint32_t unit)
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

/* After the jump the instruction `unit` is executed. */
static inline void note_branch(struct covered_branch *branch, const struct planned_branch *planned, uint32_t unit)
{
    if (unit == planned->next_unit)
        branch->went_next = 1;
    else
        branch->went_other = 1;
}
