/* What stands in the place of a Python function of a package: a wrapper of wrapt's, which behaves as the function would.

   It is a subclass of wrapt's own type. That binds to an object through a proxy of its own, which is never twice the
   same, cannot be pickled, and is not what weakref.WeakMethod and its like expect; this one binds as a function does, to
   a plain method, and is called without a method being made at all where a function would be. */
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdbool.h>
#include <stdint.h>
#include <structmember.h>

#include "core/kinds.h"
#include "core/levels.h"
#include "core/recorder.h"
#include "hooks/slot.h"
#include "hooks/stubs.h"
#include "hooks/filtering.h"

/* What it keeps, behind what wrapt does. */
struct wrapper {
    vectorcallfunc call; /* NULL in one that somebody else has made of its type */
    const struct slot *slot;
};

static PyTypeObject *wrapper_type, *wrapt_type;

static Py_ssize_t wrapper_place;

static PyObject *name_of_wrapped, *name_of_qualname;

static inline struct wrapper *wrapper_of(PyObject *object)
{
    return (struct wrapper *)(void *)((char *)object + wrapper_place);
}

/* The function behind it; a new reference, or NULL with an exception set. */
static inline PyObject *wrapper_real(PyObject *wrapper)
{
    return PyObject_GenericGetAttr(wrapper, name_of_wrapped);
}

static const struct slot *wrapper_slot(PyObject *wrapper)
{
    return wrapper_of(wrapper)->slot;
}

static PyObject *wrapper_call(PyObject *wrapper, PyObject *arguments, PyObject *keywords)
{
    ternaryfunc call = wrapper_of(wrapper)->call ? PyVectorcall_Call : wrapt_type->tp_call;
    return call(wrapper, arguments, keywords);
}

static PyObject *wrapper_bind(PyObject *wrapper, PyObject *object, PyObject *type)
{
    if (!wrapper_of(wrapper)->call)
        return wrapt_type->tp_descr_get(wrapper, object, type);
    return object && object != Py_None ? PyMethod_New(wrapper, object) : Py_NewRef(wrapper);
}

static PyObject *wrapper_repr(PyObject *wrapper)
{
    PyObject *real = wrapper_real(wrapper), *text = real ? PyObject_Repr(real) : NULL;
    Py_XDECREF(real);
    return text;
}

/* Functions are pickled by their names, and copied by not being. */
static PyObject *wrapper_reduce(PyObject *wrapper, PyObject *protocol)
{
    (void)protocol;
    return PyObject_GetAttr(wrapper, name_of_qualname);
}

static PyObject *wrapper_copy(PyObject *wrapper, PyObject *memo)
{
    (void)memo;
    return Py_NewRef(wrapper);
}

static PyMethodDef wrapper_methods[] = {
    {"__reduce__", wrapper_reduce, METH_NOARGS, NULL},
    {"__reduce_ex__", wrapper_reduce, METH_O, NULL},
    {"__copy__", wrapper_copy, METH_NOARGS, NULL},
    {"__deepcopy__", wrapper_copy, METH_O, NULL},
    {NULL, NULL, 0, NULL},
};

/* A type under wrapt's `base`. 0, or -1 with an exception set. */
static int wrapper_begin(PyObject *base)
{
    wrapper_place = ((PyTypeObject *)base)->tp_basicsize;
    PyMemberDef members[] = {
        {"__vectorcalloffset__", T_PYSSIZET, wrapper_place + (Py_ssize_t)offsetof(struct wrapper, call), READONLY, NULL},
        {NULL, 0, 0, 0, NULL},
    };
    PyType_Slot slots[] = {
        {Py_tp_call, wrapper_call},    {Py_tp_descr_get, wrapper_bind}, {Py_tp_repr, wrapper_repr},
        {Py_tp_methods, wrapper_methods}, {Py_tp_members, members},     {0, NULL},
    };
    PyType_Spec spec = {
        .name = "interpose.FunctionWrapper",
        .basicsize = (int)(wrapper_place + (Py_ssize_t)sizeof(struct wrapper)),
        .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_METHOD_DESCRIPTOR,
        .slots = slots,
    };
    name_of_wrapped = PyUnicode_InternFromString("__wrapped__");
    name_of_qualname = PyUnicode_InternFromString("__qualname__");
    PyObject *type = name_of_wrapped && name_of_qualname ? PyType_FromSpecWithBases(&spec, base) : NULL;
    wrapper_type = (PyTypeObject *)type;
    wrapt_type = (PyTypeObject *)base;
    return type ? 0 : -1;
}

static PyObject *wrapper_made_type(void)
{
    return Py_NewRef((PyObject *)wrapper_type);
}

static int is_wrapper(PyObject *object)
{
    return wrapper_type && Py_IS_TYPE(object, wrapper_type) && wrapper_of(object)->call;
}

static void wrapper_fit(PyObject *wrapper, vectorcallfunc call, const struct slot *slot)
{
    wrapper_of(wrapper)->slot = slot;
    wrapper_of(wrapper)->call = call;
}
