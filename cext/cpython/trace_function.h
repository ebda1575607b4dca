/* A trace function in C (3.11). It is put into the threads' states as PyEval_SetTrace does, without its audit event.
   A trace function of the program takes precedence, and ours returns when it is gone: doctest and debuggers leave
   sys.settrace(None) behind. */
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

/* Put ours into a thread, or remove it. False if another trace function is there. */
VISIBLE bool trace_thread(const struct tracer *tracer, PyThreadState *state);

/* The same in all threads; returns how many have another. */
VISIBLE int trace_threads(const struct tracer *tracer);

/* Know of the program's own trace functions from now on. */
VISIBLE void watch_settrace(struct tracer *tracer);

/* Stop: returns what was missed meanwhile, or NULL. */
VISIBLE const char *trace_no_more(struct tracer *tracer);
