/* Slots for Python functions beyond those that have a stub of their own. The vectorcall of a Python function receives the function,
   so one stub is enough: it finds the slot by the function. The interpreter lock is held; a free-threaded interpreter has no such slots. */
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "hooks/slot.h"

/* NULL if there is no memory. If an earlier function at this address has a slot, that slot is no longer found. */
struct slot *further_slot_take(PyObject *function);

void further_slot_give_back(struct slot *slot);

/* NULL if it has none. */
struct slot *further_slot_of(PyObject *function);

/* Each that was ever taken: the first one after NULL; NULL after the last one. */
struct slot *further_slot_after(const struct slot *slot);
