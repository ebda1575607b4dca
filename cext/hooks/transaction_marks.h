/* Transactions that the program marks: entries in the table of calls in progress without a shim. One that began in a
   coroutine is in progress while that runs. While it is suspended others run, whose calls are not inside it: the entry
   is then put aside. If the steps of an await around it are seen, this happens at their ends. Otherwise the outermost
   coroutine's steps are seen from the next one on; the end of its first step is noticed at the next call of another
   coroutine, so a little of the loop's work in between counts for it. */
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
    PyObject *reference; /* a weak one, if nothing else tells its end; the program can count it */
    struct open_call open; /* while it is laid aside */
    struct reading left;   /* when it was */
    uint64_t start_cpu_ns, suspended_ns;
    uint32_t call, task, intrinsic, detail;
    uint32_t watched; /* its number as long as it lives, or 0 */
    uint32_t under; /* the await at whose step's end it was put aside, or 0 */
    bool is_aside;
};

/* Put those aside whose coroutine does not run, and resume those whose does. */
void marks_settle(struct thread *thread);

/* The await's step at `index` in the table ended: what began inside it waits for the next. */
void marks_leave(struct thread *thread, uint32_t index, uint32_t call, struct reading now);

/* The next step began. */
void marks_return(struct thread *thread, uint32_t call, struct reading now);

/* A step of an outermost coroutine that is not one of our awaits began, or ended. */
void marks_step(PyObject *outermost, bool begins);

/* A transaction of that name begins here. Returns the coroutine whose steps must be watched, or NULL. */
PyObject *mark_enter(const struct slot *slot, uint32_t detail);

/* The program says that something happened here: an event that takes no time. */
void mark_event(const struct slot *slot, uint32_t detail);

/* It ends here, with the current error, if any. One that did not begin on this thread does not end. */
void mark_exit(const struct slot *slot, uint32_t detail, bool failed);
