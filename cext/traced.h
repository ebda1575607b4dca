/* Code objects under line trace: which are chosen, and where their lines are counted. What is known of one hangs on its
   extra slot and is freed with it. */
#pragma once

#include <fnmatch.h>
#include <stddef.h>

#include "lines.h"
#include "ownership.h"
#include "plan.h"
#include "tasks.h"

enum { CHOICES = 64, CHOICE_BYTES = 256 };

struct traced_code {
    struct traced_code *next, *previous;
    PyCodeObject *code; /* lives as long as this does */
    uint32_t serial;    /* of the choice */
    uint32_t chosen, own;
    uint32_t coroutine;
    uint32_t observed; /* its own events are asked for (from 3.12 on) */
    uint32_t texts; /* the recording that the next are of */
    uint32_t file, function, module;
    struct plan *plan;
    struct line_table *tables;
};

static struct {
    int index; /* of the extra slot; 0: none yet */
    uint32_t serial;
    unsigned choices; /* 0: the program's own code is chosen */
    struct {
        char module[CHOICE_BYTES], function[CHOICE_BYTES];
    } choice[CHOICES];
    struct traced_code *first;
    PyInterpreterState *interpreter;
} traced = {.index = -1};

/* --- the choice */

static void choose_own_code(void)
{
    traced.choices = 0;
    traced.serial++;
}

/* Functions of modules, each a pattern as file names have them. False where there are too many. */
static bool choose(const char *module, const char *function)
{
    if (traced.choices == CHOICES || strlen(module) >= CHOICE_BYTES || strlen(function) >= CHOICE_BYTES)
        return false;
    strcpy(traced.choice[traced.choices].module, module);
    strcpy(traced.choice[traced.choices++].function, function);
    return true;
}

static bool is_module(const char *pattern, const char *module)
{
    size_t bytes = strlen(pattern);
    return fnmatch(pattern, module, 0) == 0 || (strncmp(pattern, module, bytes) == 0 && module[bytes] == '.');
}

/* A function's comprehensions, and other code inside of it without a name, are the function's. */
static bool is_function(const char *pattern, const char *function)
{
    char outer[CHOICE_BYTES];
    const char *inside = strstr(function, ".<locals>.<");
    if (fnmatch(pattern, function, 0) == 0)
        return true;
    if (!inside || (size_t)(inside - function) >= sizeof outer)
        return false;
    memcpy(outer, function, (size_t)(inside - function));
    outer[inside - function] = 0;
    return fnmatch(pattern, outer, 0) == 0;
}

static bool is_chosen(const char *module, const char *function, bool own)
{
    for (unsigned index = 0; index < traced.choices; index++)
        if (is_module(traced.choice[index].module, module) && is_function(traced.choice[index].function, function))
            return true;
    return !traced.choices && own;
}

/* --- code objects */

/* The name of the module whose names a frame's code uses, or NULL. */
static PyObject *module_of(frame *here)
{
    PyObject *names = here->f_globals;
    PyObject *name = names && PyDict_CheckExact(names) ? PyDict_GetItemString(names, "__name__") : NULL;
    return name && PyUnicode_CheckExact(name) ? name : NULL;
}

static const char *utf8(PyObject *text)
{
    const char *plain = text ? PyUnicode_AsUTF8(text) : NULL;
    if (!plain)
        PyErr_Clear();
    return plain ? plain : "";
}

static void tables_free(struct traced_code *known)
{
    while (known->tables) {
        struct line_table *table = known->tables;
        known->tables = table->next;
        lines_table_free(table);
    }
}

static void traced_code_free(void *extra)
{
    struct traced_code *known = extra;
    if (!known)
        return;
    if (known->next)
        known->next->previous = known->previous;
    if (known->previous)
        known->previous->next = known->next;
    else
        traced.first = known->next;
    tables_free(known);
    plan_free(known->plan);
    free(known);
}

static struct traced_code *new_traced_code(PyCodeObject *code)
{
    struct traced_code *known = calloc(1, sizeof *known);
    if (!known)
        return NULL;
    if (code_extra_set(code, traced.index, known)) {
        PyErr_Clear();
        free(known);
        return NULL;
    }
    known->code = code;
    known->coroutine = (code->co_flags & (CO_COROUTINE | CO_ASYNC_GENERATOR | CO_ITERABLE_COROUTINE)) != 0;
    known->next = traced.first;
    if (traced.first)
        traced.first->previous = known;
    return traced.first = known;
}

/* What start-up files have executed is the interpreter's start. */
static bool is_of_start(frame *here)
{
    PyObject *module = module_of(here);
    return module && PyUnicode_CompareWithASCIIString(module, "site") == 0;
}

static void look_at(struct traced_code *known, frame *here)
{
    known->serial = traced.serial;
    known->own = is_own(known->code->co_filename) && !is_of_start(here);
    known->chosen = is_chosen(utf8(module_of(here)), utf8(known->code->co_qualname), known->own);
}

static void name_it(struct traced_code *known, frame *here)
{
    PyObject *module = module_of(here);
    known->texts = recorder.serial;
    known->file = intern_text(known->code->co_filename);
    known->function = intern_text(known->code->co_qualname);
    known->module = module ? intern_text(module) : 0;
}

/* An exception that is set stays as it is. */
static __attribute__((noinline)) struct traced_code *first_look(PyCodeObject *code, frame *here)
{
    PyObject *type, *value, *traceback;
    struct traced_code *known = code_extra(code, traced.index);
    PyErr_Fetch(&type, &value, &traceback);
    known = known ? known : new_traced_code(code);
    if (known)
        look_at(known, here);
    PyErr_Restore(type, value, traceback);
    return known;
}

/* What is known of a code object; NULL where memory is short. */
static inline struct traced_code *traced_code_of(PyCodeObject *code, frame *here)
{
    struct traced_code *known = code_extra(code, traced.index);
    return LIKELY(known && known->serial == traced.serial) ? known : first_look(code, here);
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

static struct line_table *new_line_table(struct traced_code *known, uint32_t owner, frame *here)
{
    known->plan = known->plan ? known->plan : plan_of(known->code);
    if (!known->plan)
        return NULL;
    if (known->texts != recorder.serial)
        name_it(known, here);
    struct line_shape shape = {
        .kind = FUNCTION_CODE,
        .file = known->file,
        .function = known->function,
        .module = known->module,
        .first_line = (uint32_t)known->code->co_firstlineno,
        .own = known->own,
        .spots = known->plan->spots,
        .loops = known->plan->loops,
    };
    struct line_table *table = lines_table(owner, &shape);
    if (table)
        fill_lines(table, known->plan);
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

/* Forget all tables: what was counted in them was not in earnest, or their files are done. */
static void forget_tables(void)
{
    for (struct traced_code *known = traced.first; known; known = known->next)
        tables_free(known);
}

static int traced_begin(void)
{
    traced.interpreter = PyInterpreterState_Get();
    if (traced.index < 0)
        traced.index = code_extra_index(traced_code_free);
    return traced.index < 0 ? -1 : 0;
}
