#include "hooks/route_detail.h"

#include <string.h>

#include "core/detail_levels.h"
#include "kinds.h"
#include "cpython/attributes.h"
#include "hooks/attribute_names.h"
#include "hooks/object_texts.h"
#include "hooks/url_detail.h"

static PyObject *method_told(PyObject *told)
{
    PyObject *method = entry_named(told, "REQUEST_METHOD");
    return method ? method : entry_named(told, "method");
}

uint32_t served_detail(PyObject *owner, PyObject *told)
{
    if (!PyDict_CheckExact(told))
        return 0;
    PyObject *method = method_told(told), *path = entry_named(told, "PATH_INFO");
    path = path ? path : entry_named(told, "path");
    PyObject *route = owner ? attribute_at(owner, way_to_path) : NULL;
    bool has_route = route && PyUnicode_CheckExact(route);
    uint32_t number = url_detail(KIND_logic, method, has_route ? route : path);
    Py_XDECREF(route);
    Py_XDECREF(path);
    Py_XDECREF(method);
    return number;
}

/* A method, if any, and the pattern of a route, in which a `?` is a pattern's. Django's have no slash in front. */
static uint32_t pattern_detail(PyObject *method, PyObject *pattern)
{
    char kept[TEXT_BYTES];
    struct text text = {.bytes = kept, .room = sizeof kept};
    Py_ssize_t bytes;
    const char *given = bytes_of_text(pattern, &bytes);
    if (!given)
        return 0;
    append_method(&text, method);
    if (!bytes || !strchr("/^", *given))
        text_append(&text, "/", 1);
    text_append(&text, given, (size_t)bytes);
    return argument_intern(KIND_logic, text.bytes, text.length);
}

uint32_t told_route_detail(PyObject *told)
{
    PyObject *route = PyDict_CheckExact(told) ? entry_at(told, name_of_route) : NULL;
    PyObject *pattern = route ? attribute_at(route, way_to_path) : NULL;
    bool is_text = pattern && PyUnicode_CheckExact(pattern);
    PyObject *method = is_text ? method_told(told) : NULL;
    uint32_t number = is_text ? pattern_detail(method, pattern) : 0;
    Py_XDECREF(method);
    Py_XDECREF(pattern);
    Py_XDECREF(route);
    return number;
}

/* The name of a function, whole. */
static uint32_t name_detail(PyObject *name)
{
    Py_ssize_t bytes;
    const char *given = bytes_of_text(name, &bytes);
    return given ? argument_intern(KIND_logic, given, (size_t)bytes) : 0;
}

uint32_t kept_route_detail(PyObject *object, PyObject *ways, PyObject *method, bool is_name)
{
    uint32_t number = 0;
    for (Py_ssize_t place = 0; !number && place < PyTuple_GET_SIZE(ways); place++) {
        PyObject *pattern = attribute_at(object, PyTuple_GET_ITEM(ways, place));
        if (pattern && PyUnicode_CheckExact(pattern))
            number = is_name ? name_detail(pattern) : pattern_detail(method, pattern);
        Py_XDECREF(pattern);
    }
    return number;
}
