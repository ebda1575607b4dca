/* Python functions, intercepted by their vectorcall: every call is caught, and the function keeps its identity. */
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdbool.h>

bool is_python_function(PyObject *object);

/* Whether CPython 3.13 and later would bypass our vectorcall of an `__init__` all the same: if the function itself has another
   name, or if other threads may call it while its type is exchanged. */
bool is_gone_round(PyObject *initialiser);

/* By their position: a look-up by name would trigger audit hooks. */
PyObject *function_globals(PyObject *function);

PyObject *function_file(PyObject *function);

void *function_vectorcall(PyObject *function);

/* -1 with an exception set where it cannot be done. */
int function_put(PyObject *function, void *vectorcall, bool ours);
