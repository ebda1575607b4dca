/* Transactions that the program marks itself: entries in the table of calls in progress that no shim stands around.

   One that was begun in a coroutine is in progress while that runs. While it is suspended others run, whose calls are not
   made inside of it: then the entry is laid aside. Where the steps of an await around it are seen, that is at their
   ends. Else the outermost coroutine's steps are from the next one on; of the one in which it began the end is seen when
   the next call of another begins, so that a little of what the loop did between counts for it. */
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdbool.h>
#include <stdint.h>

#include "core/clock.h"
#include "core/recorder.h"
#include "hooks/slot.h"

struct mark {
    PyObject *coroutine; /* no reference */
    PyObject *outermost; /* the one around it; compared, never looked into */
    PyObject *reference; /* a weak one */
    struct open_call open; /* while it is laid aside */
    struct reading left;   /* when it was */
    uint64_t start_cpu_ns, suspended_ns;
    uint32_t call, task, intrinsic, detail;
    uint32_t under; /* the await at whose step's end it was laid aside, or 0 */
    bool is_aside;
};

/* Lay those aside whose coroutine does not run, and take up those whose does. */
void marks_settle(struct thread *thread);

/* The step of an await ended, which stood at `index` in the table: what was begun inside of it waits for the next. */
void marks_leave(struct thread *thread, uint32_t index, uint32_t call, struct reading now);

/* The next step began. */
void marks_return(struct thread *thread, uint32_t call, struct reading now);

/* A step of an outermost coroutine began, or ended, that is no await of ours. */
void marks_step(PyObject *outermost, bool begins);

/* A transaction of that name begins here. Gives the coroutine whose steps are to be seen, or NULL. */
PyObject *mark_enter(const struct slot *slot, uint32_t detail);

/* The program says that something happened here: an event that takes no time. */
void mark_event(const struct slot *slot, uint32_t detail);

/* It ends here, with the error that is set, if any. What was not begun on this thread does not end. */
void mark_exit(const struct slot *slot, uint32_t detail, bool failed);
