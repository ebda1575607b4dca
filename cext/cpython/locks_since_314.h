/* How CPython 3.14 and all later versions lay out their locks (cpython/version.h). */
#pragma once

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

static inline bool plain_lock_fits(PyObject *lock)
{
    return Py_TYPE(lock)->tp_basicsize == (Py_ssize_t)sizeof(struct plain_lock);
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
