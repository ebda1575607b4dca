/* Waits for the interpreter lock, each with its beginning and its end. CPython waits in two functions of the C
   library: pthread_cond_timedwait, in a loop until the lock is free, which is one wait; and pthread_cond_wait, in which
   a thread that released the lock on request waits until another has taken it. Both are exchanged in its import table,
   and pthread_cond_signal, by which a thread announces a release. A thread that finds the lock free passes only through
   the last. This code runs without the interpreter lock, but with the mutex that guards it: it allocates nothing, calls
   no Python function, and does not wait for the interpreter. */
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdbool.h>

#include "core/visible.h"
#include "hooks/slot.h"

/* Record them, from now on, as calls of the slot's intrinsic. NULL, or why that is not possible. */
const char *gil_waits_begin(const struct slot *slot);

/* Restore what was exchanged. False if somebody else has replaced ours since. */
bool gil_waits_end(void);
