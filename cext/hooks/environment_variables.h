/* Variables of an environment that is a list of bytes or a dictionary: found, and put in. */
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdbool.h>

bool is_list_of_bytes(PyObject *list);

/* A new reference to bytes; NULL if there is no such variable, or none that is text, or with an exception set. */
PyObject *value_of(PyObject *environment, const char *name);

bool has_variable(PyObject *environment, const char *name);

int put_variable(PyObject *environment, const char *name, const char *value);
