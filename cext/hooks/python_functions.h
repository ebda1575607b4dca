/* Python functions, intercepted by their vectorcall: so every call is caught, and the function stays what it is. */
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdbool.h>

int interposed_function_begin(void);

bool is_python_function(PyObject *object);

/* Does CPython, from 3.14 on, enter it where its class is often called, and not ask for its vectorcall? So it is with an
   `__init__` of plain arguments. */
bool is_gone_round(PyObject *function);

/* By their places: to ask by name is told to audit hooks. */
PyObject *function_globals(PyObject *function);

PyObject *function_file(PyObject *function);

void *function_vectorcall(PyObject *function);

void function_put(PyObject *function, void *vectorcall, bool ours);
