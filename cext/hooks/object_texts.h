/* Texts, and what objects keep in their own structure. None of the program's code is run. */
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>

const char *text_of(PyObject *object, Py_ssize_t *bytes);

enum { TEXT_BYTES = 1024 }; /* so much of a text is kept */

/* Text as bytes, as in the file system; a new reference, NULL for other objects. */
PyObject *encoded(PyObject *text);

/* A new reference, or NULL if there is no such member, or nothing in it. */
PyObject *member_of(PyObject *object, PyObject *name);
