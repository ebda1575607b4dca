/* Calls that are awaited: timed by their steps.

   A call of a coroutine function makes a coroutine and does nothing else; what it was made for is done in steps, between
   which others run. So the call is no event, but the coroutine is, from its first step to its end. To see the steps it
   is given another type while it is suspended: one under its own, alike in everything but that its steps are timed.
   While it runs, and when it has ended, it is of its own type. The coroutine is the program's own all the time: nothing
   stands in front of it. It is so with what an asynchronous generator gives for each item.

   A step is in the table of calls in progress as a call is, under the number of the whole. What of the time it was
   suspended is added to what was called inside: self time is what its own steps took on the thread. */
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
