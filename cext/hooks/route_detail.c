#include "hooks/route_detail.h"

#include <string.h>

#include "core/detail_levels.h"
#include "kinds.h"
#include "cpython/attributes.h"
#include "hooks/attribute_names.h"
#include "hooks/mounted_path.h"
#include "hooks/object_texts.h"
#include "hooks/url_detail.h"

static PyObject *method_told(PyObject *told)
{
    PyObject *method = entry_named(told, "REQUEST_METHOD");
    return method ? method : entry_named(told, "method");
}

/* Of WSGI, PATH_INFO is what is behind SCRIPT_NAME. */
static PyObject *whole_path(PyObject *told)
{
    PyObject *path = entry_named(told, "PATH_INFO");
    PyObject *mount = path && PyUnicode_CheckExact(path) ? mounted_path(told) : NULL;
    PyObject *whole = mount ? PyUnicode_Concat(mount, path) : NULL;
    if (!whole)
        PyErr_Clear();
    Py_XDECREF(mount);
    if (!path || !whole)
        return path ? path : entry_named(told, "path");
    Py_DECREF(path);
    return whole;
}

/* In the pattern of a route a `?` is a pattern's. Django's have no slash in front. */
static void append_pattern(struct text *text, const char *given, size_t bytes)
{
    if (!bytes || !strchr("/^", *given))
        text_append(text, "/", 1);
    text_append(text, given, bytes);
}

static uint32_t pattern_detail(PyObject *method, PyObject *mount, PyObject *pattern)
{
    char kept[TEXT_BYTES];
    struct text text = {.bytes = kept, .room = sizeof kept};
    Py_ssize_t bytes, above;
    const char *given = bytes_of_text(pattern, &bytes), *before = bytes_of_text(mount, &above);
    if (!given)
        return 0;
    append_method(&text, method);
    if (before)
        url_append(&text, before, (size_t)above);
    append_pattern(&text, given, (size_t)bytes);
    return argument_intern(KIND_logic, text.bytes, text.length);
}

/* A route has an `endpoint`. A mount has none, and is itself part of the mounted path: any path may follow it, which
   Starlette's pattern also calls `path`. */
static bool is_mount(PyObject *route)
{
    PyObject *endpoint = attribute_at(route, way_to_endpoint);
    Py_XDECREF(endpoint);
    return !endpoint;
}

/* The pattern of a route of ASGI behind those of its mounts; 0 if it has none. */
static uint32_t route_detail(PyObject *told, PyObject *route)
{
    char kept[TEXT_BYTES];
    struct text text = {.bytes = kept, .room = sizeof kept};
    PyObject *pattern = attribute_at(route, way_to_path), *mount = mounted_path(told), *method = method_told(told);
    Py_ssize_t bytes;
    const char *given = pattern && PyUnicode_CheckExact(pattern) ? bytes_of_text(pattern, &bytes) : NULL;
    bool ends_in_mount = given && mount && is_mount(route);
    append_method(&text, method);
    if (given && mount)
        append_mounts(&text, told, mount, ends_in_mount ? NULL : given);
    if (ends_in_mount)
        text_append(&text, "/{path}", strlen("/{path}"));
    if (given && !ends_in_mount && (bytes || !mount))
        append_pattern(&text, given, (size_t)bytes);
    Py_XDECREF(method);
    Py_XDECREF(mount);
    Py_XDECREF(pattern);
    return given ? argument_intern(KIND_logic, text.bytes, text.length) : 0;
}

uint32_t served_detail(PyObject *owner, PyObject *told)
{
    if (!PyDict_CheckExact(told))
        return 0;
    uint32_t number = owner ? route_detail(told, owner) : 0;
    if (number)
        return number;
    PyObject *method = method_told(told), *path = whole_path(told);
    number = url_detail(KIND_logic, method, path);
    Py_XDECREF(path);
    Py_XDECREF(method);
    return number;
}

uint32_t told_route_detail(PyObject *told)
{
    PyObject *route = PyDict_CheckExact(told) ? entry_at(told, name_of_route) : NULL;
    uint32_t number = route ? route_detail(told, route) : 0;
    Py_XDECREF(route);
    return number;
}

/* The name of a function, whole. */
static uint32_t name_detail(PyObject *name)
{
    Py_ssize_t bytes;
    const char *given = bytes_of_text(name, &bytes);
    return given && bytes ? argument_intern(KIND_logic, given, (size_t)bytes) : 0;
}

uint32_t kept_route_detail(PyObject *object, PyObject *ways, PyObject *method, PyObject *mount, bool is_name)
{
    uint32_t number = 0;
    for (Py_ssize_t place = 0; !number && place < PyTuple_GET_SIZE(ways); place++) {
        PyObject *pattern = attribute_at(object, PyTuple_GET_ITEM(ways, place));
        if (is_name)
            number = name_detail(pattern);
        else if (pattern && PyUnicode_CheckExact(pattern))
            number = pattern_detail(method, mount, pattern);
        Py_XDECREF(pattern);
    }
    return number;
}
