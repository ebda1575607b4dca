#include "hooks/path_detail.h"

#include "core/detail_levels.h"
#include "core/recorder.h"
#include "hooks/attribute_names.h"
#include "hooks/object_descriptor.h"
#include "hooks/object_texts.h"

uint32_t path_text(PyObject *path, enum kind kind)
{
    if (PyUnicode_Check(path) && PyUnicode_IS_COMPACT_ASCII(path))
        return path_intern(kind, (const char *)PyUnicode_1BYTE_DATA(path), (size_t)PyUnicode_GET_LENGTH(path));
    if (PyBytes_Check(path))
        return path_intern(kind, PyBytes_AS_STRING(path), (size_t)PyBytes_GET_SIZE(path));
    if (!PyUnicode_Check(path))
        return 0;
    PyObject *bytes = encoded(path);
    if (!bytes)
        return string_intern("?", 1);
    uint32_t number = path_intern(kind, PyBytes_AS_STRING(bytes), (size_t)PyBytes_GET_SIZE(bytes));
    Py_DECREF(bytes);
    return number;
}

uint32_t descriptor_detail(PyObject *object)
{
    return detail_of_descriptor(descriptor_of(object));
}

uint32_t path_detail(PyObject *path)
{
    return PyLong_CheckExact(path) ? descriptor_detail(path) : path_text(path, KIND_file);
}

uint32_t kept_path(PyObject *path)
{
    PyObject *text = member_of(path, name_of_path);
    uint32_t number = text ? path_text(text, KIND_file) : 0;
    Py_XDECREF(text);
    return number;
}
