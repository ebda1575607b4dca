/* Copies of environments that may be changed. */
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdbool.h>

#include "hooks/slot.h"

/* A copy of a given environment that may be changed; NULL for what is none that we know. */
PyObject *copy_of(PyObject *given, enum passes passes);

/* Has a given environment the variable PATH that we have? Said no of what is none that we know. */
bool has_our_path(PyObject *given);

/* Does an environment say that who gets it is not to be recorded? None is the process's own. */
bool says_off(PyObject *given);
