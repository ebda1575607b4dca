/* Calls in other interpreters of the process than the one that began the recording. Another interpreter may have a
   lock of its own. Data beside the recorder, about descriptors, children, transactions, locks and tasks, and our own
   Python objects, are ordered by the lock of the first. So these calls are recorded with what is known without them:
   times, site (with its interpreter), bytes, error, and a detail from plain arguments. Calls that start processes
   pass. */
#pragma once

#include "hooks/call.h"

/* Once, before the first. */
void other_interpreters_begin(void);

/* The same as shim_begin, there. */
bool begin_elsewhere(struct call *call, const struct slot *slot, PyObject *owner, PyObject *const *arguments, Py_ssize_t count);
