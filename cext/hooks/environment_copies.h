/* Copies of environments that may be changed. */
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdbool.h>

#include "hooks/slot.h"

/* A copy of a given environment that may be changed; NULL for an unknown type. */
PyObject *copy_of(PyObject *given, enum passes passes);

/* Whether a given environment has the same variable PATH as we do. No for an unknown type. */
bool has_our_path(PyObject *given);

/* Does an environment say that who gets it is not to be recorded? None is the process's own. */
bool says_off(PyObject *given);
