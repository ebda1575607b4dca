#include "hooks/python_functions.h"

#if PY_VERSION_HEX < 0x030c0000
/* CPython 3.11 bypasses the vectorcall only for the exact function type: a derived type, alike in everything, is not
   bypassed. */
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

int interposed_function_begin(void)
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

bool is_python_function(PyObject *object)
{
    return PyFunction_Check(object) || Py_IS_TYPE(object, &interposed_function);
}
#else
int interposed_function_begin(void)
{
    return 0;
}

static void function_exchange(PyFunctionObject *function, vectorcallfunc to, bool ours)
{
    (void)ours;
    PyFunction_SetVectorcall(function, to);
}

bool is_python_function(PyObject *object)
{
    return PyFunction_Check(object);
}
#endif

bool is_gone_round(PyObject *function)
{
    const PyCodeObject *code = (const PyCodeObject *)PyFunction_GET_CODE(function);
    return PY_VERSION_HEX >= 0x030e0000 && !(code->co_flags & (CO_VARARGS | CO_VARKEYWORDS)) && !code->co_kwonlyargcount;
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

void function_put(PyObject *function, void *vectorcall, bool ours)
{
    function_exchange((PyFunctionObject *)function, (vectorcallfunc)vectorcall, ours);
}
