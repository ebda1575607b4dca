/* Asynchronous generators: each item is awaited. */
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>

int generators_begin(PyObject *generator);
