/* Attributes that are plain data, and texts: read without running anybody's code. */
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "core/visible.h"

/* What lies at the end of a way of attributes; a new reference, or NULL. An exception that is set stays. */
VISIBLE PyObject *attribute_at(PyObject *object, PyObject *way);

/* What a module that was imported has under a name; a borrowed reference, or NULL. */
VISIBLE PyObject *entry_of_module(const char *module, const char *name);

/* A text's bytes; NULL for what is none. They last as long as the object. */
VISIBLE const char *bytes_of_text(PyObject *object, Py_ssize_t *bytes);
