/* The names that threads have in Python: read where a thread is first seen, which may have begun before, and where threading
   asks who it is, first thing in a new one and last thing before it ends: then it may have another name, which is the
   one that is told. Nothing of the program's is run. */
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "core/visible.h"

/* The calling thread is seen for the first time; its name is looked for until it is known, but not for ever. */
VISIBLE void see_first_time(void);

/* The calling thread asks who it is. */
VISIBLE void see_asking_thread(PyThreadState *state);
