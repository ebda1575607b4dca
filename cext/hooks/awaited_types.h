/* The types of awaited objects while they are suspended: each is derived from its own type, and differs only in that
   steps are timed. */
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "hooks/await_table.h"
#include "hooks/stubs.h"

/* One of the types: its own, and the one under it. */
struct sort {
    PyTypeObject type, *plain;
    PyCFunction send, close;
    fast_function throw;
};

extern struct sort coroutines, sendings, throwings, generators;

/* Of an object of either of the types: a method may be kept while it is of one, and called while it is of the other. */
struct sort *sort_of(PyObject *object);

PySendResult step_send(PyObject *awaited, PyObject *value, PyObject **result);

PyObject *coroutine_next(PyObject *awaited);

PyObject *step_next(PyObject *awaited);

PyObject *method_send(PyObject *awaited, PyObject *value);

PyObject *method_throw(PyObject *awaited, PyObject *const *arguments, Py_ssize_t count);

/* After being closed it has ended, whatever it returns; the result is None. One that had not begun never existed. */
PyObject *method_close(PyObject *awaited, PyObject *nothing);

extern PyMethodDef step_methods[];

void await_becomes(PyObject *awaited, const struct await *like, struct sort *sort);

PyCFunction method_of(PyTypeObject *type, const char *name, int flags);

/* A type derived from the plain one, alike in everything except what it already has. */
int type_begin(PyTypeObject *type, PyTypeObject *plain, PyMethodDef *methods);

int sort_begin(struct sort *sort, PyTypeObject *plain, PyMethodDef *methods);

int steps_begin(struct sort *sort, PyTypeObject *plain, PyMethodDef *methods);

/* An object made only to be examined is closed, to avoid a warning. */
void never_awaited(PyObject *item);
