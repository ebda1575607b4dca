/* A trace function in C (3.11). It stands in the threads' states as PyEval_SetTrace puts it there, without the audit event that
   this raises. A trace function of the program's own goes before ours, which is back when there is none any more: doctest and
   debuggers leave sys.settrace(None) behind. */
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdbool.h>

#include "core/visible.h"

struct tracer {
    Py_tracefunc see;
    bool (*is_on)(void);
    void (*lend)(void); /* a function of the program's will be there */
    PyInterpreterState *interpreter;
    struct tracer *next; /* of those that watch sys.settrace */
    bool is_watching;
};

/* Ours is put into a thread, or taken out of it. False where somebody else's trace function is there. */
VISIBLE bool trace_thread(const struct tracer *tracer, PyThreadState *state);

/* The same in all threads; gives how many have another. */
VISIBLE int trace_threads(const struct tracer *tracer);

/* Know of the program's own trace functions from now on. */
VISIBLE void watch_settrace(struct tracer *tracer);

/* No more: gives what was missed meanwhile, or NULL. */
VISIBLE const char *trace_no_more(struct tracer *tracer);
