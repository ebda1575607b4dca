/* What a child needs in its environment to be recorded, put into a copy of the one that it was given. What the program has
   is never changed. */
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdbool.h>

#include "hooks/slot.h"

/* Is it what a child would inherit? What was started in another transaction may have left its own there. */
bool own_tells_fate(void);

/* What is given in the place of `given`; NULL where that is to be passed on as it is. */
PyObject *environment_for_child(PyObject *given, enum passes passes, bool preload);

/* Does the environment that children inherit have all they need? Mostly, so it is looked at without a copy. */
bool own_is_complete(void);
