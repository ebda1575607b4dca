/* The names of threads in Python. They are read where a thread is first seen, which may have begun earlier, and
   where threading asks for its identity, at its beginning and before its end: it may then have another name, which
   replaces the first. No code of the program runs. */
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "core/visible.h"

/* The calling thread is seen for the first time; its name is looked for until it is known, but not for ever. */
VISIBLE void see_first_time(void);

/* The calling thread asks who it is. */
VISIBLE void see_asking_thread(PyThreadState *state);
