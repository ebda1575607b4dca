/* Whether a lock is free, so that there is nothing to wait for. Its own memory shows it fastest, and for an RLock
   nothing else does. Before shims are installed, new locks are used to check that the fields are where we expect
   them. */
#pragma once

#include "cpython/version.h"

/* By who had it already: it is held since the first time. */
static inline bool is_taken_again(PyObject *lock)
{
    return ((const struct recursive_lock *)(const void *)lock)->count > COUNT_OF_FIRST;
}

/* A semaphore of multiprocessing, by its own method. */
bool is_free_semaphore(PyObject *semaphore, void *is_zero);

bool plain_lock_is_known(PyObject *lock);

bool recursive_lock_is_known(PyObject *lock);
