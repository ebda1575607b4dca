/* Waits for the interpreter lock, each with its beginning and its end.

   CPython waits in two functions of the C library: pthread_cond_timedwait, in a loop until the lock is free, which is one
   wait; and pthread_cond_wait, in which a thread that gave the lock up because others want it waits until one of them has
   taken it. Both are exchanged in its import table, and pthread_cond_signal, by which whoever gives the lock up says so. A
   thread that finds the lock free passes through the last alone.

   What is done there is done without the interpreter's lock, but with the mutex that guards it: it allocates nothing, calls
   nothing of Python's, and does not wait for the interpreter. */
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdbool.h>

#include "core/visible.h"
#include "hooks/slot.h"

/* Record them as calls of the intrinsic that the slot stands for, from now on. NULL, or why that cannot be. */
const char *gil_waits_begin(const struct slot *slot);

/* Put back what was exchanged. False where somebody else has put his own upon ours. */
bool gil_waits_end(void);
