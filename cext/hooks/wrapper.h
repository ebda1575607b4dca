/* The replacement of a Python function of a package: a wrapper of wrapt's that behaves like the function. It is a
   subclass of wrapt's own type, which binds to an object through a proxy of its own that is never the same twice,
   cannot be pickled, and does not work with weakref.WeakMethod and similar classes. This one binds like a function, to
   a plain method, and is called without making a method wherever a function would be. */
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "hooks/slot.h"

/* Its own data, after wrapt's. */
struct wrapper {
    vectorcallfunc call; /* NULL in an object that somebody else has made of its type */
    const struct slot *slot;
};

extern Py_ssize_t wrapper_place;
extern PyObject *name_of_wrapped, *name_of_qualname;

static inline struct wrapper *wrapper_of(PyObject *object)
{
    return (struct wrapper *)(void *)((char *)object + wrapper_place);
}

/* The function behind it; a new reference, or NULL with an exception set. */
static inline PyObject *wrapper_real(PyObject *wrapper)
{
    return PyObject_GenericGetAttr(wrapper, name_of_wrapped);
}

static inline const struct slot *wrapper_slot(PyObject *wrapper)
{
    return wrapper_of(wrapper)->slot;
}

/* A type under wrapt's `base`. 0, or -1 with an exception set. */
int wrapper_begin(PyObject *base);

PyObject *wrapper_made_type(void);

int is_wrapper(PyObject *object);

void wrapper_fit(PyObject *wrapper, vectorcallfunc call, const struct slot *slot);
