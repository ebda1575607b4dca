/* The program that a call is about to start, with its words: whether it is an interpreter that our boot library must be
   preloaded into. Only texts and plain lists are looked at; for anything else it is said no. */
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdbool.h>

#include "hooks/slot.h"

bool program_needs_preload(const struct slot *slot, PyObject *const *items, Py_ssize_t count, PyObject *environment);
