#include "cpython/attributes.h"

#include <stdbool.h>
#include <string.h>

/* Is what the type has under the name plain data: a slot, a field of a tuple, or nothing, so that it is the instance's? */
static bool is_plain_attribute(PyTypeObject *type, PyObject *name)
{
    PyObject *found = _PyType_Lookup(type, name);
    if (!found || Py_IS_TYPE(found, &PyMemberDescr_Type))
        return true;
    return strcmp(Py_TYPE(found)->tp_name, "_collections._tuplegetter") == 0 || !Py_TYPE(found)->tp_descr_get;
}

PyObject *attribute_at(PyObject *object, PyObject *way)
{
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    PyObject *found = Py_NewRef(object);
    for (Py_ssize_t place = 0; found && place < PyTuple_GET_SIZE(way); place++) {
        PyObject *name = PyTuple_GET_ITEM(way, place);
        PyObject *next = is_plain_attribute(Py_TYPE(found), name) ? PyObject_GenericGetAttr(found, name) : NULL;
        Py_DECREF(found);
        found = next;
    }
    PyErr_Restore(type, value, traceback);
    return found;
}

PyObject *entry_of_module(const char *module, const char *name)
{
    PyObject *found = PyDict_GetItemString(PyImport_GetModuleDict(), module);
    PyObject *names = found && PyModule_Check(found) ? PyModule_GetDict(found) : NULL;
    return names ? PyDict_GetItemString(names, name) : NULL;
}

const char *bytes_of_text(PyObject *object, Py_ssize_t *bytes)
{
    if (object && PyUnicode_CheckExact(object)) {
        const char *text = PyUnicode_AsUTF8AndSize(object, bytes);
        if (!text)
            PyErr_Clear();
        return text;
    }
    if (!object || !PyBytes_CheckExact(object))
        return NULL;
    *bytes = PyBytes_GET_SIZE(object);
    return PyBytes_AS_STRING(object);
}
