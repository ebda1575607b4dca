/* Slots for Python functions beyond those that have a stub of their own. A Python function is called with itself, so one stub
   is enough: it looks for the slot by the function. The interpreter lock is held; a free-threaded interpreter has none of these. */
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "hooks/slot.h"

/* NULL if there is no memory. Another one that the function's address had is its no longer. */
struct slot *further_slot_take(PyObject *function);

void further_slot_give_back(struct slot *slot);

/* NULL if it has none. */
struct slot *further_slot_of(PyObject *function);

/* Each that was ever taken: the first one after NULL; NULL after the last one. */
struct slot *further_slot_after(const struct slot *slot);
