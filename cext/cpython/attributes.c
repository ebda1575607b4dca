#include "cpython/attributes.h"

#include <stdbool.h>
#include <string.h>

#include "cpython/side_lock.h"
#include "cpython/version.h"

#if HAS_ENTRY_REFERENCES
PyObject *entry_at(PyObject *dictionary, PyObject *key)
{
    PyObject *found = NULL;
    if (PyDict_GetItemRef(dictionary, key, &found) < 0)
        PyErr_Clear();
    return found;
}

PyObject *entry_named(PyObject *dictionary, const char *name)
{
    PyObject *found = NULL;
    if (PyDict_GetItemStringRef(dictionary, name, &found) < 0)
        PyErr_Clear();
    return found;
}
#else
PyObject *entry_at(PyObject *dictionary, PyObject *key)
{
    PyObject *found = PyDict_GetItemWithError(dictionary, key);
    if (!found)
        PyErr_Clear();
    return Py_XNewRef(found);
}

PyObject *entry_named(PyObject *dictionary, const char *name)
{
    return Py_XNewRef(PyDict_GetItemString(dictionary, name));
}
#endif

PyObject *entry_of_type(PyTypeObject *type, PyObject *name)
{
#if IS_FREE_THREADED
    return _PyType_LookupRef(type, name);
#else
    return Py_XNewRef(_PyType_Lookup(type, name));
#endif
}

PyObject *items_as_now(PyObject *list)
{
    PyObject *items = IS_FREE_THREADED && PyList_Check(list) ? PyList_AsTuple(list) : Py_NewRef(list);
    if (!items)
        PyErr_Clear();
    return items;
}

/* Fields of these types are data behind a function of a compiled language, which does nothing but return it. */
static bool is_compiled_field(PyObject *found)
{
    static const char *const types[] = {"aiohttp._http_parser.RawRequestMessage",
                                        "ddtrace.internal.native._native.SpanData",
                                        "grpc._cython.cygrpc.CallDetails", "grpc._cython.cygrpc.RequestCallEvent"};
    bool is_field = Py_IS_TYPE(found, &PyGetSetDescr_Type), is_known = false;
    for (size_t place = 0; is_field && place < sizeof types / sizeof *types; place++)
        is_known = is_known || strcmp(PyDescr_TYPE(found)->tp_name, types[place]) == 0;
    return is_known;
}

/* CPython 3.12 renamed their type. */
static bool is_field_of_tuple(PyObject *found)
{
    const char *name = Py_TYPE(found)->tp_name;
    return strcmp(name + (name[0] == '_'), "collections._tuplegetter") == 0;
}

/* Whether the type has plain data under the name (a slot, a field of a tuple) or nothing, so that it is the
   instance's. */
static bool is_plain_attribute(PyTypeObject *type, PyObject *name)
{
    PyObject *found = entry_of_type(type, name);
    bool is_plain = !found || Py_IS_TYPE(found, &PyMemberDescr_Type) || !Py_TYPE(found)->tp_descr_get ||
                    is_field_of_tuple(found) || is_compiled_field(found);
    Py_XDECREF(found);
    return is_plain;
}

PyObject *attribute_at(PyObject *object, PyObject *way)
{
    struct raised raised = raised_keep();
    PyObject *found = Py_NewRef(object);
    for (Py_ssize_t place = 0; found && place < PyTuple_GET_SIZE(way); place++) {
        PyObject *name = PyTuple_GET_ITEM(way, place);
        PyObject *next = is_plain_attribute(Py_TYPE(found), name) ? PyObject_GenericGetAttr(found, name) : NULL;
        Py_DECREF(found);
        found = next;
    }
    raised_restore(raised);
    return found;
}

PyObject *entry_of_module(const char *module, const char *name)
{
    PyObject *found = entry_named(PyImport_GetModuleDict(), module);
    PyObject *names = found && PyModule_Check(found) ? PyModule_GetDict(found) : NULL;
    PyObject *entry = names ? entry_named(names, name) : NULL;
    Py_XDECREF(found);
    return entry;
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
