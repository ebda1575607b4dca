/* Transactions that go on in other threads. A context (contextvars) that is copied within a transaction carries it, and
   so does the coroutine of a task that is begun there. What another thread then runs by that context's method `run` is
   recorded as a call that continues the transaction. Nothing is put into the context, and nothing refers to it: its
   address is remembered until it is freed. */
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdbool.h>

#include "core/recorder.h"
#include "hooks/call.h"

/* The call has made something, or has been given something, that carries the transaction in progress, if there is one. */
void carry_transaction(const struct call *call, PyObject *result);

/* Whether an object may carry a transaction: false at once for all others. */
bool may_carry(const PyObject *object);

/* Whether a call of `run` continues a transaction of another thread; then it is begun. */
bool begin_continuing(struct call *call, struct thread *thread, PyThreadState *state);

/* A call that continues a transaction has ended, whose request may have a better name by now. */
void name_continuing(struct call *call);
