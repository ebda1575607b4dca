/* A call that starts a program passes on a copy of the environment that it was given, with what the child needs to be
   recorded in it. What cannot be understood is passed on as it is. */
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdbool.h>

#include "hooks/slot.h"

enum { PASSED_ITEMS = 40 };

/* What is passed on instead of the given environment; to be undone after the call. */
struct passed {
    PyObject *items[PASSED_ITEMS];
    PyObject *environment;
    PyObject *tuple;
    bool preload; /* with our library */
    char **own, **before; /* the process's own environment for the time of the call */
};

/* The arguments that are passed on. */
PyObject *const *pass_items(struct passed *passed, const struct slot *slot, PyObject *const *items, Py_ssize_t count,
                            PyObject *names);

PyObject *pass_tuple(struct passed *passed, const struct slot *slot, PyObject *arguments);

/* After the call, which may have raised. */
void pass_end(struct passed *passed, const struct slot *slot);
