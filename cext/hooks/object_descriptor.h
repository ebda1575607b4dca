/* The descriptor of an object: a number, a raw file, a socket, or an object above one. No code of the program
   runs. */
#pragma once

#include "core/visible.h"
#include "cpython/raised.h"
#include "cpython/version.h"

void descriptor_owner_add(unsigned place, PyTypeObject *type, void *ask);

static inline int descriptor_of_number(PyObject *number)
{
    int overflow, digit = value_of_digit(number);
    if (LIKELY(digit > 0))
        return digit;
    long value = PyLong_AsLongAndOverflow(number, &overflow);
    return overflow || value < 0 || value > INT32_MAX ? -1 : (int)value;
}

int descriptor_under(PyObject *object);

/* The same in an interpreter other than the one that is recorded in full, whose types of raw files and sockets are
   different objects with the same C code. */
int descriptor_elsewhere(PyObject *object);

/* The descriptor of an object, or -1. No code of the program runs. */
static inline int descriptor_of(PyObject *object)
{
    if (!object)
        return -1;
    return PyLong_CheckExact(object) ? descriptor_of_number(object) : descriptor_under(object);
}

/* The same of an object that may be around a socket, with a `fileno` in Python, which is not called: the socket is
   looked for among the object's attributes. */
int descriptor_of_waited(PyObject *object);
