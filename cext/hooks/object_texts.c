#include "hooks/object_texts.h"

#include <structmember.h>

#include "cpython/attributes.h"

const char *text_of(PyObject *object, Py_ssize_t *bytes)
{
    if (!object || !PyUnicode_Check(object))
        return NULL;
    struct raised raised = raised_keep();
    const char *text = PyUnicode_AsUTF8AndSize(object, bytes);
    raised_restore(raised);
    return text;
}

PyObject *encoded(PyObject *text)
{
    if (PyBytes_Check(text))
        return Py_NewRef(text);
    if (!PyUnicode_Check(text))
        return NULL;
    struct raised raised = raised_keep();
    PyObject *bytes = PyUnicode_EncodeFSDefault(text);
    raised_restore(raised);
    return bytes;
}

PyObject *member_of(PyObject *object, PyObject *name)
{
    PyObject *member = entry_of_type(Py_TYPE(object), name), *value = NULL;
    if (member && Py_IS_TYPE(member, &PyMemberDescr_Type))
        value = PyMember_GetOne((const char *)object, ((PyMemberDescrObject *)member)->d_member);
    if (!value)
        PyErr_Clear();
    Py_XDECREF(member);
    return value;
}
