#include "hooks/python_functions.h"

#include "cpython/side_lock.h"
#include "cpython/version.h"

/* CPython bypasses the vectorcall only for the exact function type: a derived type, alike in everything, is not bypassed. */
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

/* Only if a function needs it: a program can see that the function type has a derived type. */
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

/* From 3.13 on CPython enters such an `__init__` directly if its class is often called from one place. */
static bool has_plain_arguments(const PyFunctionObject *function)
{
    const PyCodeObject *code = (const PyCodeObject *)function->func_code;
    return !(code->co_flags & (CO_VARARGS | CO_VARKEYWORDS)) && !code->co_kwonlyargcount;
}

static bool is_named_initialiser(const PyFunctionObject *function)
{
    return PyUnicode_CompareWithASCIIString(function->func_name, "__init__") == 0;
}

static bool is_entered(const PyFunctionObject *function)
{
    switch (FUNCTIONS_ENTERED) {
    case ENTERED_all:
        return true;
    case ENTERED_initialisers:
        return has_plain_arguments(function) && is_named_initialiser(function);
    default:
        return false;
    }
}

bool is_python_function(PyObject *object)
{
    return PyFunction_Check(object) || Py_IS_TYPE(object, &interposed_function);
}

bool is_gone_round(PyObject *initialiser)
{
    const PyFunctionObject *function = (const PyFunctionObject *)initialiser;
    if (FUNCTIONS_ENTERED != ENTERED_initialisers || !has_plain_arguments(function))
        return false;
    return IS_FREE_THREADED || !is_named_initialiser(function);
}

PyObject *function_globals(PyObject *function)
{
    return PyFunction_GET_GLOBALS(function);
}

PyObject *function_file(PyObject *function)
{
    return ((PyCodeObject *)PyFunction_GET_CODE(function))->co_filename;
}

void *function_vectorcall(PyObject *function)
{
    return (void *)((PyFunctionObject *)function)->vectorcall;
}

int function_put(PyObject *function, void *vectorcall, bool ours)
{
    PyFunctionObject *exchanged = (PyFunctionObject *)function;
    bool is_hidden = ours && is_entered(exchanged);
    if (is_hidden && interposed_function_begin())
        return -1;
    function_set_vectorcall(exchanged, (vectorcallfunc)vectorcall);
    if (is_hidden)
        Py_SET_TYPE(function, &interposed_function);
    else if (Py_IS_TYPE(function, &interposed_function))
        Py_SET_TYPE(function, &PyFunction_Type);
    return 0;
}
