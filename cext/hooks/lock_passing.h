/* Calls that take a lock: one that is free is passed through, and merely counted. */
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdbool.h>

#include "core/recorder.h"
#include "core/visible.h"
#include "hooks/filtering.h"
#include "hooks/lock_holders.h"
#include "hooks/locks.h"
#include "hooks/slot.h"

static inline bool is_free(const struct slot *slot, PyObject *lock)
{
    switch ((enum lock)slot->lock) {
    case LOCK_plain:
        return is_free_plain(lock);
    case LOCK_recursive:
        return is_free_recursive(lock);
    default:
        return is_free_semaphore(lock, slot->ask);
    }
}

/* Whether `acquire` was called without waiting, by its first argument or by name. */
bool will_not_wait(PyObject *first, PyObject *keywords);

/* A free lock need not be waited for, and a call without waiting does not wait: such a call passes, and is only
   counted. NULL: it is to be timed, or nothing is recorded. If threads run in parallel, a free lock may be taken a
   moment later: then all are timed, and those that did not wait are counted afterwards. */
static inline struct thread *lock_passes(const struct slot *slot, PyObject *lock, PyThreadState *state, PyObject *first,
                                         PyObject *keywords)
{
    if (UNLIKELY(!state || recorder.all_waits))
        return NULL;
    if ((IS_FREE_THREADED || !is_free(slot, lock)) && !will_not_wait(first, keywords))
        return NULL;
    return recorder_paused() || is_left_out(slot->intrinsic) ? NULL : recording();
}

static inline bool is_taken(const PyObject *result)
{
    return result && result != Py_False;
}

/* The present holder has had it since it first took it. */
static inline void keep_taker(const struct slot *slot, PyObject *lock, PyThreadState *state, const struct thread *thread,
                              PyObject *result)
{
    if (slot->detail == DETAIL_holder && is_taken(result) && !(slot->lock == LOCK_recursive && is_taken_again(lock)))
        lock_taken(state, lock, thread);
}

/* It was taken, or not, by a call that passed on that thread, or by one that was timed. */
static inline void lock_done(const struct slot *slot, PyObject *lock, PyThreadState *state, struct thread *passed,
                             PyObject *result)
{
    struct thread *thread = passed ? passed : current_thread;
    if (passed)
        passed->record->fields.passed++;
    if (passed || (state && thread_records(thread)))
        keep_taker(slot, lock, state, thread, result);
}
