#include "hooks/wrapper.h"

#include <structmember.h>

static PyTypeObject *wrapper_type, *wrapt_type;
Py_ssize_t wrapper_place;
PyObject *name_of_wrapped, *name_of_qualname;

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

int wrapper_begin(PyObject *base)
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

PyObject *wrapper_made_type(void)
{
    return Py_NewRef((PyObject *)wrapper_type);
}

int is_wrapper(PyObject *object)
{
    return wrapper_type && Py_IS_TYPE(object, wrapper_type) && wrapper_of(object)->call;
}

void wrapper_fit(PyObject *wrapper, vectorcallfunc call, const struct slot *slot)
{
    wrapper_of(wrapper)->slot = slot;
    wrapper_of(wrapper)->call = call;
}
