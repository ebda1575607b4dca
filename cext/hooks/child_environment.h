/* What a child needs in its environment to be recorded, put into a copy of the one that it was given. What the program has
   is never changed. */
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdbool.h>

#include "hooks/slot.h"

/* Whether it is what a child would inherit. A child started in another transaction may have left its own there. */
bool own_tells_fate(void);

/* The replacement of `given`; NULL if that is to be passed on unchanged. */
PyObject *environment_for_child(PyObject *given, enum passes passes, bool preload);

/* Whether the environment that children inherit has all they need. It usually has, so this is checked without a
   copy. */
bool own_is_complete(void);
