/* The program that a call is about to start, with its words: whether it is an interpreter into which the boot
   library must be preloaded. Only texts and plain lists are read; for anything else the answer is no. */
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdbool.h>

#include "hooks/slot.h"

bool program_needs_preload(const struct slot *slot, PyObject *const *items, Py_ssize_t count, PyObject *environment);
