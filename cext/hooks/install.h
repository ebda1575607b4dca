/* Putting a stub in the place of a function, and taking it out again. */
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "core/kinds.h"
#include "core/levels.h"
#include "core/recorder.h"
#include "hooks/slot.h"
#include "hooks/stubs.h"
#include "hooks/filtering.h"

/* May this address be written to? The table of a module may lie in read-only memory. The mapping found last is kept:
   most tables lie in the interpreter's own data. */
static bool is_writable(const void *address)
{
    static unsigned long known_begin, known_end;
    unsigned long begin, end, wanted = (unsigned long)address;
    char line[512], mode[8];
    if (known_begin <= wanted && wanted < known_end)
        return true;
    bool writable = false;
    FILE *maps = fopen("/proc/self/maps", "re");
    while (maps && !writable && fgets(line, sizeof line, maps)) {
        writable = sscanf(line, "%lx-%lx %7s", &begin, &end, mode) == 3 && begin <= wanted && wanted < end &&
                   mode[1] == 'w';
        if (writable) {
            known_begin = begin;
            known_end = end;
        }
    }
    if (maps)
        fclose(maps);
    return writable;
}

/* A function that Cython 3 has compiled begins as one of C does. However it is called, by its vectorcall too, the pointer
   is taken from its definition at each call; where its vectorcall lies elsewhere, it was compiled for the limited API, and
   its layout is another. */
static bool is_cython_function(PyObject *callable)
{
    const PyTypeObject *type = Py_TYPE(callable);
    const char *dot = strrchr(type->tp_name, '.'), *name = dot ? dot + 1 : type->tp_name;
    return strcmp(name, "cython_function_or_method") == 0 && type->tp_basicsize > (Py_ssize_t)sizeof(PyCMethodObject) &&
           type->tp_vectorcall_offset == (Py_ssize_t)offsetof(PyCFunctionObject, vectorcall);
}

/* The definition that a function, a method or a class method is made from; NULL where it has none. */
static PyMethodDef *definition_of(PyObject *callable)
{
    if (PyCFunction_Check(callable))
        return ((PyCFunctionObject *)callable)->m_ml;
    if (Py_IS_TYPE(callable, &PyMethodDescr_Type) || Py_IS_TYPE(callable, &PyClassMethodDescr_Type))
        return ((PyMethodDescrObject *)callable)->d_method;
    return is_cython_function(callable) ? ((PyCFunctionObject *)callable)->m_ml : NULL;
}

/* Which pool serves a definition; SIGNATURE_COUNT where none does. */
static enum signature signature_of(const PyMethodDef *definition)
{
    switch (definition->ml_flags &
            (METH_VARARGS | METH_KEYWORDS | METH_NOARGS | METH_O | METH_FASTCALL | METH_METHOD)) {
    case METH_NOARGS:
    case METH_O:
    case METH_VARARGS:
        return SIGNATURE_pair;
    case METH_VARARGS | METH_KEYWORDS:
        return SIGNATURE_triple;
    case METH_FASTCALL:
        return SIGNATURE_fast;
    case METH_FASTCALL | METH_KEYWORDS:
        return SIGNATURE_fast_keywords;
    case METH_METHOD | METH_FASTCALL | METH_KEYWORDS:
        return SIGNATURE_method;
    default:
        return SIGNATURE_COUNT;
    }
}

static bool takes_one_argument(const PyMethodDef *definition)
{
    return definition->ml_flags & METH_O;
}

static bool takes_arguments(const PyMethodDef *definition)
{
    return definition->ml_flags & METH_VARARGS;
}

/* The slots of a type that can be interposed, by the name of the method that shows them. */
#define TYPE_SLOTS(X) \
    X("__next__", tp_iternext, SIGNATURE_unary) \
    X("__iter__", tp_iter, SIGNATURE_unary) \
    X("__call__", tp_call, SIGNATURE_triple) \
    X("__init__", tp_init, SIGNATURE_initialise) \
    X("__del__", tp_finalize, SIGNATURE_finish)

static void **type_slot(PyTypeObject *type, const char *name, enum signature *signature)
{
#define PLACE_OF_SLOT(method, member, pool) \
    if (strcmp(name, method) == 0) { \
        *signature = pool; \
        return (void **)&type->member; \
    }
    TYPE_SLOTS(PLACE_OF_SLOT)
    return NULL;
}

/* Put `to` in the place of `from` in the type's slot and in the descriptor that shows the slot as a method. */
static void exchange_in_type(PyTypeObject *type, const char *name, void *from, void *to)
{
    enum signature signature;
    void **place = type_slot(type, name, &signature);
    if (*place == from)
        *place = to;
    PyObject *shown = type->tp_dict ? PyDict_GetItemString(type->tp_dict, name) : NULL;
    if (shown && Py_IS_TYPE(shown, &PyWrapperDescr_Type) && ((PyWrapperDescrObject *)shown)->d_wrapped == from)
        ((PyWrapperDescrObject *)shown)->d_wrapped = to;
    PyType_Modified(type);
}

/* The same for it and all its subclasses, which copied the slot when they were made. False with an exception set where
   the subclasses cannot be had. */
static bool exchange_in_types(PyTypeObject *type, const char *name, void *from, void *to)
{
    exchange_in_type(type, name, from, to);
    PyObject *subclasses = PyObject_CallMethod((PyObject *)&PyType_Type, "__subclasses__", "O", type);
    bool done = subclasses != NULL;
    for (Py_ssize_t index = 0; done && index < PyList_GET_SIZE(subclasses); index++)
        done = exchange_in_types((PyTypeObject *)PyList_GET_ITEM(subclasses, index), name, from, to);
    Py_XDECREF(subclasses);
    return done;
}

/* --- Python functions: by their vectorcall, so that every call is caught and the function stays what it is */

#if PY_VERSION_HEX < 0x030c0000
/* CPython 3.11 asks for exactly the type of functions before it goes round the vectorcall: a type under it, alike in
   everything, is not gone round. */
static PyObject *function_reduce(PyObject *function, PyObject *nothing)
{
    (void)nothing;
    return PyObject_GetAttrString(function, "__qualname__");
}

static PyMethodDef function_methods[] = {
    {"__reduce__", function_reduce, METH_NOARGS, NULL}, /* pickled by its name, like any function */
    {NULL, NULL, 0, NULL},
};

static PyTypeObject interposed_function = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "function",
    .tp_methods = function_methods,
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_METHOD_DESCRIPTOR,
};

static int interposed_function_begin(void)
{
    if (interposed_function.tp_flags & Py_TPFLAGS_READY)
        return 0;
    const PyTypeObject *plain = &PyFunction_Type;
    interposed_function.tp_base = &PyFunction_Type;
    interposed_function.tp_basicsize = plain->tp_basicsize;
    interposed_function.tp_vectorcall_offset = plain->tp_vectorcall_offset;
    interposed_function.tp_call = plain->tp_call;
    interposed_function.tp_traverse = plain->tp_traverse;
    interposed_function.tp_clear = plain->tp_clear;
    interposed_function.tp_dealloc = plain->tp_dealloc;
    interposed_function.tp_repr = plain->tp_repr;
    interposed_function.tp_descr_get = plain->tp_descr_get;
    interposed_function.tp_dictoffset = plain->tp_dictoffset;
    interposed_function.tp_weaklistoffset = plain->tp_weaklistoffset;
    if (PyType_Ready(&interposed_function))
        return -1;
    return PyDict_DelItemString(interposed_function.tp_dict, "__doc__"); /* it would stand before each function's own */
}

static void function_exchange(PyFunctionObject *function, vectorcallfunc to, bool ours)
{
    function->vectorcall = to;
    function->func_version = 0;
    Py_SET_TYPE(function, ours ? &interposed_function : &PyFunction_Type);
}

static bool is_python_function(PyObject *object)
{
    return PyFunction_Check(object) || Py_IS_TYPE(object, &interposed_function);
}
#else
static int interposed_function_begin(void)
{
    return 0;
}

static void function_exchange(PyFunctionObject *function, vectorcallfunc to, bool ours)
{
    (void)ours;
    PyFunction_SetVectorcall(function, to);
}

static bool is_python_function(PyObject *object)
{
    return PyFunction_Check(object);
}
#endif

/* Does CPython, from 3.14 on, enter it where its class is often called, and not ask for its vectorcall? So it is with an
   `__init__` of plain arguments. */
static bool is_gone_round(PyObject *function)
{
    const PyCodeObject *code = (const PyCodeObject *)PyFunction_GET_CODE(function);
    return PY_VERSION_HEX >= 0x030e0000 && !(code->co_flags & (CO_VARARGS | CO_VARKEYWORDS)) && !code->co_kwonlyargcount;
}

/* By their places: to ask by name is told to audit hooks. */
static PyObject *function_globals(PyObject *function)
{
    return PyFunction_GET_GLOBALS(function);
}

static PyObject *function_file(PyObject *function)
{
    return ((PyCodeObject *)PyFunction_GET_CODE(function))->co_filename;
}

static void *function_vectorcall(PyObject *function)
{
    return (void *)((PyFunctionObject *)function)->vectorcall;
}

static void function_put(PyObject *function, void *vectorcall, bool ours)
{
    function_exchange((PyFunctionObject *)function, (vectorcallfunc)vectorcall, ours);
}
