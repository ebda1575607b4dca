/* The exception that is being raised, put aside while something else may raise one. */
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>

struct raised {
    PyObject *type, *value, *traceback; /* NULL if none; before CPython 3.12 the value may not be an exception yet */
};

static inline struct raised raised_keep(void)
{
    struct raised kept;
    PyErr_Fetch(&kept.type, &kept.value, &kept.traceback);
    return kept;
}

static inline void raised_restore(struct raised kept)
{
    PyErr_Restore(kept.type, kept.value, kept.traceback);
}
