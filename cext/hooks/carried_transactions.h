/* Transactions that continue in other threads. A context (contextvars) copied within a transaction carries it, and so
   does the coroutine of a task that is started there. What another thread then runs by that context's method `run` is
   recorded as a call that continues the transaction. interpose puts nothing into the context and holds no reference to
   it; it remembers the address until the context is freed. */
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdbool.h>

#include "core/recorder.h"
#include "hooks/call.h"

/* Note that what the call made, or was given, carries the transaction in progress, if there is one. */
void carry_transaction(const struct call *call, PyObject *result);

/* Whether an object may carry a transaction. A quick test, without a lock. */
bool may_carry(const PyObject *object);

/* Begin a call of `run` if it continues a transaction of another thread. True if it has begun. */
bool begin_continuing(struct call *call, struct thread *thread, PyThreadState *state);

/* End a call that continues a transaction, and name it: the request may have a better name by now. */
void end_continuing(struct call *call);

/* Did another thread run such a call for a transaction of the span's thread meanwhile? */
bool was_worked_for(const struct span *span);
