#include "hooks/locks.h"

bool is_free_semaphore(PyObject *semaphore, void *is_zero)
{
    PyObject *answer = ((PyObject * (*)(PyObject *, PyObject *)) is_zero)(semaphore, NULL);
    bool is_free = answer == Py_False;
    Py_XDECREF(answer);
    return is_free;
}

/* What `look` sees before a lock is taken, while it is held, and after its release. */
static bool is_seen_by(PyObject *lock, bool (*look)(PyObject *))
{
    bool before = look(lock);
    PyObject *taken = PyObject_CallMethod(lock, "acquire", NULL);
    bool held = taken && look(lock);
    PyObject *released = taken ? PyObject_CallMethod(lock, "release", NULL) : NULL;
    bool after = released && look(lock);
    Py_XDECREF(taken);
    Py_XDECREF(released);
    PyErr_Clear();
    return before && !held && after;
}

static bool is_unowned(PyObject *lock)
{
    const struct recursive_lock *fields = (const void *)lock;
    return fields->count == 0 && fields->owner != PyThread_get_thread_ident();
}

bool plain_lock_is_known(PyObject *lock)
{
    return plain_lock_fits(lock) && is_seen_by(lock, is_free_plain);
}

bool recursive_lock_is_known(PyObject *lock)
{
    bool fits = Py_TYPE(lock)->tp_basicsize >= (Py_ssize_t)sizeof(struct recursive_lock);
    return fits && is_seen_by(lock, is_unowned);
}
