/* Attributes that are plain data, and texts: read without running anybody's code. */
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "core/visible.h"
#include "cpython/raised.h"

/* The value at the end of a path of attributes; a new reference, or NULL. A current exception stays. */
VISIBLE PyObject *attribute_at(PyObject *object, PyObject *way);

/* What a dictionary has under a key, or a name; a new reference, or NULL: other threads may take it out. No exception is set. */
VISIBLE PyObject *entry_at(PyObject *dictionary, PyObject *key);
VISIBLE PyObject *entry_named(PyObject *dictionary, const char *name);

/* What a module that was imported has under a name; a new reference, or NULL. */
VISIBLE PyObject *entry_of_module(const char *module, const char *name);

/* What a type, or one of its bases, has under a name; a new reference, or NULL. */
VISIBLE PyObject *entry_of_type(PyTypeObject *type, PyObject *name);

/* A list or a tuple, as it is now: where threads run at once a list is copied. A new reference, or NULL. */
VISIBLE PyObject *items_as_now(PyObject *list);

/* A text's bytes; NULL for other objects. They last as long as the object. */
VISIBLE const char *bytes_of_text(PyObject *object, Py_ssize_t *bytes);
