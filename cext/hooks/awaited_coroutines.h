/* Coroutines while they are suspended, and what their `__await__` gives. */
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>

int coroutines_begin(PyObject *coroutine);
