/* The objects that the collector looks through, one after the other: a list of them, which Python gives, takes memory of
   the program's that may be large. */
#pragma once

#include <Python.h>
#include <stdbool.h>

#include "core/visible.h"

/* `visit` may make objects and let them go again, but none that was there before; it gives 1. */
VISIBLE void visit_tracked(int (*visit)(PyObject *, void *), void *given);

/* Whether it is a set or dictionary that may have members or keys other than strings. */
static inline bool has_other_than_texts(PyObject *object)
{
    Py_ssize_t place = 0;
    PyObject *first;
    if (PyDict_CheckExact(object))
        return PyDict_Next(object, &place, &first, NULL) && !PyUnicode_CheckExact(first);
    return Py_IS_TYPE(object, &PySet_Type) && PySet_GET_SIZE(object) > 0;
}
