/* CPython 3.13: as 3.12, with other frames (cpython/version.h). */
#pragma once

#include "cpython/version_since_313.h"
#include "cpython/version_until_313.h"

#define FRAME_NO_CODE FRAME_OWNED_BY_CSTACK
#define FUNCTIONS_ENTERED ENTERED_initialisers

/* A plain lock of 3.13.1 and later; what is built for 3.13 serves 3.13.0 as well. */
struct mutex_lock {
    PyObject_HEAD
    PyMutex lock;
};

static inline bool is_mutex_lock(PyObject *lock)
{
    return has_size(lock, sizeof(struct mutex_lock));
}

static inline bool plain_lock_fits(PyObject *lock)
{
    return is_mutex_lock(lock) || is_semaphore_lock(lock);
}

static inline bool is_free_plain(PyObject *lock)
{
    const struct mutex_lock *fields = (const void *)lock;
    return is_mutex_lock(lock) ? !(__atomic_load_n(&fields->lock._bits, __ATOMIC_ACQUIRE) & _Py_LOCKED)
                               : is_free_semaphore_lock(lock);
}

static inline PyCodeObject *frame_code(frame *frame)
{
    return (PyCodeObject *)frame->f_executable;
}

static inline bool frame_is_interpreters(const frame *frame)
{
    return frame->owner == FRAME_OWNED_BY_CSTACK;
}

#define ENDS_OF_VERSION(X) STORES_SINCE_313(X)
#define RETURNS(X) X(RETURN_VALUE) X(RETURN_CONST)
