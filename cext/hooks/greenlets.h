/* Greenlets: stacks of C that take turns on one thread, without the interpreter's knowledge. A call in which another
   greenlet runs is still in progress, but that greenlet's calls are not inside it, and its time is not spent in it. So
   the calls in progress of the greenlet that is left are put aside, on its own stack, and resumed when it runs again.
   Every switch is a call of `switch` or `throw`, by method or by greenlet's C functions, and every return to a greenlet
   is the return of such a call. */
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdbool.h>
#include <stdint.h>

#include "core/clock.h"
#include "core/fields.h"
#include "core/recorder.h"
#include "hooks/answers.h"

/* The calls in progress of a greenlet that is not running. */
struct aside {
    const struct thread *thread; /* NULL: nothing was recorded */
    uint32_t greenlet;
    struct thread_record *record; /* NULL: there are none */
    uint32_t count, serving;
    struct answer answer; /* that one of them awaits */
    struct reading left;
    struct open_call open[OPEN_CALLS];
};

void lay_aside(struct aside *aside, PyObject *next);

/* Not in a child that was forked meanwhile, which has another table. */
void take_up(struct aside *aside);

bool greenlets_begin(PyObject *capsule);

void greenlets_end(void);
