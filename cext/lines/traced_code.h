/* Code objects under line trace: where their lines are counted. What is known of one hangs on its extra slot and is freed
   with it. */
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "cpython/known_code.h"
#include "lines/line_plan.h"

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

extern struct known_codes traced_codes;

/* What is known of a code object; NULL where memory is short. */
static inline struct traced_code *traced_code_of(PyCodeObject *code, frame *here)
{
    return (struct traced_code *)known_code_of(&traced_codes, code, here);
}

/* The same, or NULL where it was not looked at yet. */
static inline struct traced_code *traced_code_known(PyCodeObject *code)
{
    return code_extra(code, traced_codes.index);
}

static inline struct traced_code *first_traced_code(void)
{
    return (struct traced_code *)traced_codes.first;
}

static inline struct traced_code *next_traced_code(struct traced_code *known)
{
    return (struct traced_code *)known->is.next;
}

/* Its plan, made when it is first wanted; NULL where memory is short. An exception must not be set. */
struct plan *plan_traced(struct traced_code *known);

/* Where a function's lines are counted for an owner, found first from now on; NULL where there is no room. What is of other
   files is dropped. */
struct line_table *other_table(struct traced_code *known, uint32_t owner, frame *here);

/* What the lines of a code object, or of all (NULL), were charged so far, and what was taken off for events. */
void count_ticks(PyObject *code, int64_t *ticks, int64_t *event_ticks);

/* Forget all tables, for what was counted in them was not in earnest, or their files are done; and all plans, for the costs in them
   change. Lines must be off. */
void forget_plans(void);
