/* Greenlets: stacks of C that take turns on one thread, without the interpreter being told.

   A call in which another greenlet goes on is still in progress, but what that one does is not made inside of it, and the
   time is not spent in it. So the calls in progress of the one that is left are laid aside, on its own stack, and taken
   up when it goes on. Every switch is a call of `switch` or `throw`, by method or by greenlet's functions for C, and
   every return to a greenlet is the return of such a call. */
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdbool.h>
#include <stdint.h>

#include "core/clock.h"
#include "core/fields.h"
#include "core/recorder.h"

/* The calls in progress of a greenlet that is not running. */
struct aside {
    const struct thread *thread; /* NULL: nothing was recorded */
    uint32_t greenlet;
    struct thread_record *record; /* NULL: there are none */
    uint32_t count, serving;
    struct reading left;
    struct open_call open[OPEN_CALLS];
};

void lay_aside(struct aside *aside, PyObject *next);

/* Not in a child that was forked meanwhile, whose table is another. */
void take_up(const struct aside *aside);

bool greenlets_begin(PyObject *capsule);

void greenlets_end(void);
