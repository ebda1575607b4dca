/* What is known without collectors about the place of a call: file, function, module and the lines of the code, by
   the call's stack. Looked up once per stack, while its frame exists, in a table of fixed size, which drops the oldest.
   Only used with data collectors (collectors/collectors.h), which get it. */
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>

#include "core/recorder.h"
#include "core/visible.h"
#include "interpose_collector.h"

enum { IDENTIFIED = 2048, IDENTIFIED_TEXTS = 5 };

struct identified {
    uint32_t stack;    /* its stack; 0 in an unused entry */
    uint32_t recorded; /* the stack that is recorded instead, where collectors named the place itself; or 0 */
    PyObject *texts[IDENTIFIED_TEXTS]; /* keep those of the area alive */
    struct interpose_area area; /* as collectors are given it at each call; of the code it has no reference */
};

struct identifications {
    struct identified *places;
    uint32_t serial; /* of the recording that the stacks are of */
};

extern struct identifications identified;

void identified_forget(void);

/* 0, or -1 if there is no room. */
int identified_begin(void);

/* The text's bytes, which live as long as the entry; NULL for other objects. */
const char *identified_keep(struct identified *place, unsigned index, PyObject *text);

static inline struct identified *identified_at(uint32_t stack)
{
    return &identified.places[stack % IDENTIFIED];
}

/* The data of the place of a stack, or NULL. */
static inline struct identified *identified_find(uint32_t stack)
{
    struct identified *place = identified_at(stack);
    return LIKELY(place->stack == stack && identified.serial == recorder.serial) ? place : NULL;
}

/* The same, looked up now: the frame that runs is the one that called. */
struct identified *identify(uint32_t stack);
