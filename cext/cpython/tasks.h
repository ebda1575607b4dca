/* Numbers of asynchronous tasks, by the outermost running coroutine, so this works with any framework. A greenlet is
   a task, too. There is one table: a task has the same number in events, lines and functions. */
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "core/recorder.h"
#include "cpython/frame.h"

/* The number of the task that a coroutine, or a greenlet, is the outermost of; 0 if there is no room. */
VISIBLE uint32_t number_of_task(PyObject *outermost);

/* Recognise a coroutine, a context or the like later, by its address and this identity; 0 where its end would not be
   told. */
VISIBLE uint32_t object_watch(PyObject *object);
VISIBLE bool object_lives(const PyObject *object, uint32_t identity);

/* The tasks of a forked child are not its parent's. */
VISIBLE void tasks_forget(void);

/* The task that is being run: that of the innermost coroutine, or the greenlet; 0 if there is neither. */
VISIBLE uint32_t task_of_thread(const struct thread *thread);

/* The task in which `awaited` makes its first step: that of the outermost coroutine around it, or itself. */
VISIBLE uint32_t task_here(PyObject *awaited);

/* The outermost coroutine around the innermost one that runs; NULL if none does. */
VISIBLE PyObject *outermost_here(void);

/* The outermost coroutine around a frame; `awaited` if there is none. */
VISIBLE PyObject *outermost_from(frame *inner, PyObject *awaited);

/* Where the address is kept of the dictionary in which asyncio has the task that each loop runs: it lasts as long as the process.
   NULL there as long as asyncio is not imported, or has none. */
VISIBLE PyObject *const *find_running_tasks(void);

/* The event loop that runs on the thread from now on, or none. */
VISIBLE void loop_runs(const PyObject *loop);

/* The thread's hooks of asynchronous generators were set or restored, or may have been set before the thread was recorded. */
VISIBLE void loop_hooks_are_set(void);
