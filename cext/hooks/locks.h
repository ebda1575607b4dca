/* Whether a lock is free, so that there is nothing to wait for. Its own memory shows it fastest, and for an RLock
   nothing else does. Before shims are installed, new locks are used to check that the fields are where we expect
   them. */
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <semaphore.h>
#include <stdbool.h>

#if PY_VERSION_HEX >= 0x030e0000
struct plain_lock {
    PyObject_HEAD
    PyMutex lock;
};

struct recursive_lock {
    PyObject_HEAD
    PyMutex lock;
    unsigned long long owner;
    size_t count; /* of the times it was taken again */
};

enum { COUNT_OF_FIRST = 0 };

/* If it is handed to whoever waits longest, it is never free in between. */
static inline bool is_nobodys(const PyMutex *mutex)
{
    return !(__atomic_load_n(&mutex->_bits, __ATOMIC_ACQUIRE) & _Py_LOCKED);
}

static inline bool is_free_plain(PyObject *lock)
{
    return is_nobodys(&((const struct plain_lock *)(const void *)lock)->lock);
}

/* Also to who has it already. */
static inline bool is_free_recursive(PyObject *lock)
{
    const struct recursive_lock *fields = (const void *)lock;
    return is_nobodys(&fields->lock) || fields->owner == PyThread_get_thread_ident();
}
#else
struct plain_lock {
    PyObject_HEAD
    void *lock;
    PyObject *weak_references;
    char locked;
};

struct recursive_lock {
    PyObject_HEAD
    void *lock;
    unsigned long owner;
    unsigned long count;
};

enum { COUNT_OF_FIRST = 1 };

/* A thread that a release has woken has the lock at once, but its fields say so only when it has the interpreter
   lock again: until then only the semaphore below knows. */
static inline bool is_nobodys(void *semaphore)
{
    int value = 0;
    return sem_getvalue(semaphore, &value) == 0 && value > 0;
}

static inline bool is_free_plain(PyObject *lock)
{
    const struct plain_lock *fields = (const void *)lock;
    return !fields->locked && is_nobodys(fields->lock);
}

/* Also to who has it already. */
static inline bool is_free_recursive(PyObject *lock)
{
    const struct recursive_lock *fields = (const void *)lock;
    if (fields->count)
        return fields->owner == PyThread_get_thread_ident();
    return is_nobodys(fields->lock);
}
#endif

/* By who had it already: it is held since the first time. */
static inline bool is_taken_again(PyObject *lock)
{
    return ((const struct recursive_lock *)(const void *)lock)->count > COUNT_OF_FIRST;
}

/* A semaphore of multiprocessing, by its own method. */
bool is_free_semaphore(PyObject *semaphore, void *is_zero);

bool plain_lock_is_known(PyObject *lock);

bool recursive_lock_is_known(PyObject *lock);
