#include "hooks/awaited_coroutines.h"

#include <stdbool.h>

#include "hooks/awaited_types.h"

static PyObject *name_of_awaited;

/* Whoever awaits it steps it through us. One that is already being awaited is left alone, to be refused as usual. */
static PyObject *coroutine_await(PyObject *awaited)
{
    PyObject *inner = PyObject_GetAttr(awaited, name_of_awaited);
    bool is_awaited = inner && inner != Py_None;
    Py_XDECREF(inner);
    if (is_awaited)
        PyErr_SetString(PyExc_RuntimeError, "coroutine is being awaited already");
    return inner && !is_awaited ? Py_NewRef(awaited) : NULL;
}

/* What a coroutine's `__await__` gives steps it, and so do we. */
struct outside {
    PyObject_HEAD
    PyObject *coroutine;
};

static PyTypeObject outside_type, *plain_outside_type;

static PyObject *method_await(PyObject *awaited, PyObject *nothing)
{
    (void)nothing;
    PyObject *outside = PyCoro_Type.tp_as_async->am_await(awaited);
    if (outside && Py_IS_TYPE(outside, plain_outside_type) && Py_IS_TYPE(awaited, &coroutines.type))
        Py_SET_TYPE(outside, &outside_type);
    return outside;
}

static PyObject *coroutine_in(PyObject *outside)
{
    return ((struct outside *)outside)->coroutine;
}

static PyObject *outside_next(PyObject *outside)
{
    return coroutine_next(coroutine_in(outside));
}

static PyObject *outside_send(PyObject *outside, PyObject *value)
{
    return method_send(coroutine_in(outside), value);
}

static PyObject *outside_throw(PyObject *outside, PyObject *const *arguments, Py_ssize_t count)
{
    return method_throw(coroutine_in(outside), arguments, count);
}

static PyObject *outside_close(PyObject *outside, PyObject *nothing)
{
    return method_close(coroutine_in(outside), nothing);
}

static void outside_dealloc(PyObject *outside)
{
    Py_SET_TYPE(outside, plain_outside_type);
    plain_outside_type->tp_dealloc(outside);
}

static PyMethodDef outside_methods[] = {
    {"send", outside_send, METH_O, NULL},
    {"throw", (PyCFunction)(void *)outside_throw, METH_FASTCALL, NULL},
    {"close", outside_close, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static PyMethodDef coroutine_methods[] = {
    {"__await__", method_await, METH_NOARGS | METH_COEXIST, NULL},
    {"send", method_send, METH_O, NULL},
    {"throw", (PyCFunction)(void *)method_throw, METH_FASTCALL, NULL},
    {"close", method_close, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static PyAsyncMethods coroutine_async = {.am_await = coroutine_await, .am_send = step_send};

int coroutines_begin(PyObject *coroutine)
{
    PyObject *outside = PyCoro_Type.tp_as_async->am_await(coroutine);
    if (!outside)
        return -1;
    plain_outside_type = Py_TYPE(outside);
    outside_type.tp_iternext = outside_next;
    outside_type.tp_dealloc = outside_dealloc;
    name_of_awaited = PyUnicode_InternFromString("cr_await");
    coroutines.type.tp_as_async = &coroutine_async;
    coroutines.type.tp_iternext = coroutine_next;
    int failed = !name_of_awaited || type_begin(&outside_type, plain_outside_type, outside_methods) ||
                 steps_begin(&coroutines, &PyCoro_Type, coroutine_methods) ||
                 PyDict_DelItemString(coroutines.type.tp_dict, "__next__");
    never_awaited(outside);
    return failed ? -1 : 0;
}
