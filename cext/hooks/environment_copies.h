/* Copies of environments that may be changed. */
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "hooks/slot.h"

/* A copy of a given environment that may be changed; NULL for what is none that we know. */
PyObject *copy_of(PyObject *given, enum passes passes);
