/* Awaited calls, timed by their steps.

   Calling a coroutine function only makes a coroutine, whose work is done in steps, between which others run. So the call
   is not an event; the coroutine is, from its first step to its end. To see its steps it gets another type while it is
   suspended: one derived from its own, which differs only in that steps are timed. While it runs, and when it has ended,
   it has its own type. It is always the program's own object: nothing stands in front of it. The same applies to what an
   asynchronous generator returns for each item.

   A step is in the table of calls in progress like a call, under the number of the whole. The time of suspension is added
   to that of inner calls: self time is what its own steps took on the thread. */
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdbool.h>

#include "core/visible.h"
#include "hooks/awaited_types.h"
#include "hooks/call.h"
#include "hooks/hot_path.h"

/* The types without names are learned from a coroutine and an asynchronous generator that have not begun. */
int awaits_begin(PyObject *coroutine, PyObject *generator);

/* The steps of a coroutine that runs are seen from the next one on. */
void see_steps(PyObject *coroutine);

/* The call made something to be awaited: that is timed, and the call itself is not recorded. */
bool becomes_await(struct call *call, PyObject *result, struct sort *sort);

/* The end of a call of what may be asynchronous. */
static inline void shim_end_or_await(struct call *call, PyObject *result)
{
    PyTypeObject *type = result ? Py_TYPE(result) : NULL;
    if (UNLIKELY(type == &PyCoro_Type) && becomes_await(call, result, &coroutines))
        return;
    if (UNLIKELY(type == &PyAsyncGen_Type) && becomes_await(call, result, &generators))
        return;
    shim_end(call, result, result == NULL);
}
