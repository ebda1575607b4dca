#include "hooks/mounted_path.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "cpython/attributes.h"
#include "cpython/side_lock.h"
#include "hooks/object_texts.h"

/* One part of a path. */
struct part {
    const char *bytes;
    size_t length;
};

/* What `whole` has behind `base`, which it begins with. */
static PyObject *rest_of(PyObject *whole, PyObject *base)
{
    bool are_texts = whole && base && PyUnicode_CheckExact(whole) && PyUnicode_CheckExact(base);
    Py_ssize_t from = are_texts ? PyUnicode_GET_LENGTH(base) : 0, end = are_texts ? PyUnicode_GET_LENGTH(whole) : 0;
    bool begins = end > from && PyUnicode_Tailmatch(whole, base, 0, end, -1) == 1;
    PyObject *rest = begins ? PyUnicode_Substring(whole, from, end) : NULL;
    if (!rest)
        PyErr_Clear();
    return rest;
}

/* Starlette's Mount keeps the server's own path in app_root_path, and releases 0.33 and 0.34 the other in
   route_root_path. */
static PyObject *path_of_scope(PyObject *told)
{
    PyObject *base = entry_named(told, "app_root_path");
    PyObject *whole = entry_named(told, base ? "root_path" : "route_root_path");
    if (whole && !base)
        base = entry_named(told, "root_path");
    PyObject *rest = rest_of(whole, base);
    Py_XDECREF(whole);
    Py_XDECREF(base);
    return rest;
}

PyObject *mounted_path(PyObject *told)
{
    PyObject *name = entry_named(told, "SCRIPT_NAME");
    if (!name)
        return path_of_scope(told);
    if (PyUnicode_CheckExact(name) && PyUnicode_GET_LENGTH(name))
        return name;
    Py_DECREF(name);
    return NULL;
}

/* --- patterns */

/* The next part of a path, behind its slash; false at the end. */
static bool next_part(const char **at, const char *end, struct part *part)
{
    if (*at >= end)
        return false;
    part->bytes = *at + (**at == '/');
    const char *slash = memchr(part->bytes, '/', (size_t)(end - part->bytes));
    part->length = (size_t)((slash ? slash : end) - part->bytes);
    *at = part->bytes + part->length;
    return true;
}

static bool has_value(const struct part *part, PyObject *value)
{
    char number[24];
    Py_ssize_t bytes;
    const char *text = bytes_of_text(value, &bytes);
    int overflow = 0;
    if (!text && PyLong_CheckExact(value)) {
        bytes = snprintf(number, sizeof number, "%lld", PyLong_AsLongLongAndOverflow(value, &overflow));
        text = overflow ? NULL : number;
    }
    return text && (size_t)bytes == part->length && memcmp(text, part->bytes, part->length) == 0;
}

static bool is_one_part(const char *path, const char *end, PyObject *value)
{
    struct part part;
    int found = 0;
    while (next_part(&path, end, &part))
        found += has_value(&part, value);
    return found == 1;
}

/* Every part is compared with the others, and the client chooses their number: a path with more is kept as it is. */
static bool has_few_parts(const char *path, const char *end)
{
    enum { PARTS_AT_MOST = 32 };
    struct part part;
    int parts = 0;
    while (path && parts <= PARTS_AT_MOST && next_part(&path, end, &part))
        parts++;
    return parts <= PARTS_AT_MOST;
}

/* Whether a route's pattern has the parameter itself: `{name}` or `{name:int}`. */
static bool names_parameter(const char *pattern, const char *name, size_t length)
{
    for (const char *at = pattern; at && (at = strchr(at, '{')); at++)
        if (strncmp(at + 1, name, length) == 0 && at[1 + length] && strchr("}:", at[1 + length]))
            return true;
    return false;
}

/* The name of the only parameter that a part of the path is the value of; NULL if there is none. */
static const char *name_of_part(const struct part *part, const char *path, const char *end, PyObject *values,
                                const char *pattern, Py_ssize_t *length)
{
    PyObject *key, *value;
    const char *found = NULL;
    Py_ssize_t place = 0, bytes;
    while (values && PyDict_Next(values, &place, &key, &value)) {
        const char *name = bytes_of_text(key, &bytes);
        if (!name || !has_value(part, value) || names_parameter(pattern, name, (size_t)bytes))
            continue;
        if (found || !is_one_part(path, end, value))
            return NULL;
        found = name;
        *length = bytes;
    }
    return found;
}

void append_mounts(struct text *text, PyObject *told, PyObject *mount, const char *pattern)
{
    char kept[TEXT_BYTES];
    struct text made = {.bytes = kept, .room = sizeof kept};
    struct part part;
    Py_ssize_t bytes = 0, length = 0;
    const char *path = bytes_of_text(mount, &bytes), *end = path ? path + bytes : NULL;
    PyObject *given = has_few_parts(path, end) ? entry_named(told, "path_params") : NULL;
    PyObject *values = NULL;
    if (given && PyDict_CheckExact(given))
        values = IS_FREE_THREADED ? PyDict_Copy(given) : Py_NewRef(given);
    for (const char *at = path; at && made.length < made.room && next_part(&at, end, &part);) {
        const char *name = name_of_part(&part, path, end, values, pattern, &length);
        text_append(&made, "/{", name ? 2 : 1);
        text_append(&made, name ? name : part.bytes, name ? (size_t)length : part.length);
        text_append(&made, "}", name ? 1 : 0);
    }
    url_append(text, made.bytes, made.length);
    PyErr_Clear();
    Py_XDECREF(values);
    Py_XDECREF(given);
}
