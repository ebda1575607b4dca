/* Calls that are made in other interpreters of the process than the one that began the recording.

   Another interpreter may have a lock of its own. What is kept beside the recorder, of descriptors, children, transactions, locks
   and tasks, and what Python objects of ours are needed for, is ordered by the lock of the first. So of these calls there
   is recorded what is known without: times, place (its sites tell of which interpreter), bytes, error, and a detail that
   plain arguments tell. What starts processes passes through. */
#pragma once

#include "hooks/call.h"

/* Once, before the first. */
void other_interpreters_begin(void);

/* The same as shim_begin, there. */
bool begin_elsewhere(struct call *call, const struct slot *slot, PyObject *owner, PyObject *const *arguments, Py_ssize_t count);
