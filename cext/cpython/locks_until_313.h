/* How CPython 3.11 to 3.13 lay out their locks (cpython/version.h). From 3.13.1 on a plain one is a mutex
   (cpython/version_313.h). */
#pragma once

#include <semaphore.h>

struct semaphore_lock {
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

static inline bool has_size(PyObject *lock, size_t bytes)
{
    return Py_TYPE(lock)->tp_basicsize == (Py_ssize_t)bytes;
}

static inline bool is_semaphore_lock(PyObject *lock)
{
    return has_size(lock, sizeof(struct semaphore_lock));
}

static inline bool is_free_semaphore_lock(PyObject *lock)
{
    const struct semaphore_lock *fields = (const void *)lock;
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
