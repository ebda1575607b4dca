/* Python functions, intercepted by their vectorcall: every call is caught, and the function keeps its identity. */
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdbool.h>

int interposed_function_begin(void);

bool is_python_function(PyObject *object);

/* Does CPython, from 3.14 on, enter it where its class is often called, and not ask for its vectorcall? So it is with an
   `__init__` of plain arguments. */
bool is_gone_round(PyObject *function);

/* By their position: a look-up by name would trigger audit hooks. */
PyObject *function_globals(PyObject *function);

PyObject *function_file(PyObject *function);

void *function_vectorcall(PyObject *function);

void function_put(PyObject *function, void *vectorcall, bool ours);
