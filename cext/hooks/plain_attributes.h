/* What is kept of objects of packages: attributes that are plain data, words, URLs. None of their code is run. */
#pragma once

#define PY_SSIZE_T_CLEAN

#include "cpython/attributes.h"
#include "hooks/detail.h"

/* The first word; of anything that does not begin like a name, nothing. */
static uint32_t word_detail(PyObject *object)
{
    Py_ssize_t bytes, length = 0;
    const char *text = bytes_of_text(object, &bytes);
    while (text && length < bytes && length < 64 && (Py_ISALNUM(text[length]) || strchr("_-.", text[length])))
        length++;
    bool whole = length == bytes || (length < bytes && text && text[length] == ' ');
    return text && whole && length && arguments_kept(KIND_db) != KEEP_nothing ? string_intern(text, (size_t)length) : 0;
}

/* The name of a module, as it is imported. */
static uint32_t module_detail(PyObject *object)
{
    Py_ssize_t bytes;
    const char *text = bytes_of_text(object, &bytes);
    return text ? argument_intern(KIND_import, text, (size_t)bytes) : 0;
}

/* --- URLs */

struct text {
    char bytes[TEXT_BYTES];
    size_t length;
};

static void append(struct text *text, const char *bytes, size_t length)
{
    size_t room = sizeof text->bytes - text->length;
    length = length < room ? length : room;
    memcpy(text->bytes + text->length, bytes, length);
    text->length += length;
}

static size_t length_until(const char *bytes, size_t length, const char *ends)
{
    size_t place = 0;
    while (place < length && (!bytes[place] || !strchr(ends, bytes[place])))
        place++;
    return place;
}

/* Without what stands before the last @, which is a user and a password. */
static void append_authority(struct text *text, const char *bytes, size_t length)
{
    const char *at = memrchr(bytes, '@', length);
    size_t skipped = at ? (size_t)(at + 1 - bytes) : 0;
    append(text, bytes + skipped, length - skipped);
}

/* Without the parameters that may stand behind a semicolon in each part. */
static void append_path(struct text *text, const char *bytes, size_t length)
{
    length = length_until(bytes, length, "?#");
    while (length) {
        size_t kept = length_until(bytes, length, ";");
        append(text, bytes, kept);
        size_t skipped = kept + length_until(bytes + kept, length - kept, "/");
        bytes += skipped;
        length -= skipped;
    }
}

/* Up to the first slash; but a password may have one that should have been written otherwise, and then stands where no
   port can. */
static size_t length_of_authority(const char *bytes, size_t length)
{
    size_t authority = length_until(bytes, length, "/\\?#");
    const char *at = memrchr(bytes, '@', length), *colon = memchr(bytes, ':', authority);
    if (!at || !colon || (size_t)(at - bytes) < authority)
        return authority;
    size_t digits = (size_t)(colon + 1 - bytes);
    while (digits < authority && Py_ISDIGIT(bytes[digits]))
        digits++;
    size_t rest = (size_t)(at + 1 - bytes);
    return digits == authority ? authority : rest + length_until(at + 1, length - rest, "/\\?#");
}

static void append_url(struct text *text, const char *url, size_t length)
{
    const char *colon = memmem(url, length_until(url, length, "?#"), "://", 3);
    size_t scheme = colon ? (size_t)(colon + 3 - url) : 0;
    if (!scheme && length > 1 && url[0] == '/' && url[1] == '/')
        scheme = 2;
    if (scheme) {
        size_t authority = length_of_authority(url + scheme, length - scheme);
        append(text, url, scheme);
        append_authority(text, url + scheme, authority);
        url += scheme + authority;
        length -= scheme + authority;
    }
    append_path(text, url, length);
}

static void append_part(struct text *text, const char *before, PyObject *part, void (*put)(struct text *, const char *, size_t))
{
    Py_ssize_t bytes;
    const char *found = bytes_of_text(part, &bytes);
    if (!found || !bytes)
        return;
    append(text, before, strlen(before));
    put(text, found, (size_t)bytes);
}

/* As httpx keeps it: scheme, user, host, port, path and more in a tuple. */
static void append_parts(struct text *text, PyObject *parts)
{
    PyObject *port = PyTuple_GET_ITEM(parts, 3);
    append_part(text, "", PyTuple_GET_ITEM(parts, 0), append);
    append_part(text, "://", PyTuple_GET_ITEM(parts, 2), append);
    if (PyLong_CheckExact(port)) {
        char number[16];
        append(text, number, (size_t)snprintf(number, sizeof number, ":%d", descriptor_of_number(port)));
    }
    append_part(text, "", PyTuple_GET_ITEM(parts, 4), append_path);
}

static PyObject *url_ways; /* how yarl keeps them: the names of scheme, authority and path */

static PyObject *way_to_path; /* how a route keeps its own */

static PyObject *way_to_scope; /* how a server, or a request, keeps what ASGI hands on */

static bool append_by_ways(struct text *text, PyObject *url)
{
    static void (*const puts[])(struct text *, const char *, size_t) = {append, append_authority, append_path};
    static const char *const before[] = {"", "://", ""};
    for (Py_ssize_t place = 0; place < 3; place++) {
        PyObject *part = attribute_at(url, PyTuple_GET_ITEM(url_ways, place));
        bool found = part && PyUnicode_CheckExact(part);
        append_part(text, before[place], part, puts[place]);
        Py_XDECREF(part);
        if (!found)
            return false;
    }
    return true;
}

/* A method, if any, and a URL: a text, or an object that keeps its parts. */
static uint32_t url_detail(enum kind kind, PyObject *method, PyObject *url)
{
    struct text text = {.length = 0};
    Py_ssize_t bytes;
    const char *given = bytes_of_text(url, &bytes), *word = bytes_of_text(method, &bytes);
    if (word && bytes < 32) {
        append(&text, word, (size_t)bytes);
        append(&text, " ", 1);
    }
    given = bytes_of_text(url, &bytes);
    size_t before = text.length;
    if (given)
        append_url(&text, given, (size_t)bytes);
    else if (url && PyTuple_Check(url) && PyTuple_GET_SIZE(url) == 7)
        append_parts(&text, url);
    else if (!url || !append_by_ways(&text, url))
        text.length = before;
    return text.length > before ? argument_intern(kind, text.bytes, text.length) : 0;
}

static PyObject *method_told(PyObject *told)
{
    PyObject *method = PyDict_GetItemString(told, "REQUEST_METHOD");
    return method ? method : PyDict_GetItemString(told, "method");
}

/* What is served: its method, and the path of the route that serves it, or else its own. */
static uint32_t served_detail(PyObject *owner, PyObject *told)
{
    if (!PyDict_CheckExact(told))
        return 0;
    PyObject *method = method_told(told), *path = PyDict_GetItemString(told, "PATH_INFO");
    path = path ? path : PyDict_GetItemString(told, "path");
    PyObject *route = owner ? attribute_at(owner, way_to_path) : NULL;
    bool has_route = route && PyUnicode_CheckExact(route);
    uint32_t number = url_detail(KIND_logic, method, has_route ? route : path);
    Py_XDECREF(route);
    return number;
}

static PyObject *name_of_route; /* the key under which a router of ASGI puts the route that it found */

/* A method, if any, and the pattern of a route, in which a `?` is a pattern's. Django's have no slash in front. */
static uint32_t pattern_detail(PyObject *method, PyObject *pattern)
{
    struct text text = {.length = 0};
    Py_ssize_t bytes;
    const char *word = bytes_of_text(method, &bytes);
    if (word && bytes < 32) {
        append(&text, word, (size_t)bytes);
        append(&text, " ", 1);
    }
    const char *given = bytes_of_text(pattern, &bytes);
    if (!given)
        return 0;
    if (!bytes || !strchr("/^", *given))
        append(&text, "/", 1);
    append(&text, given, (size_t)bytes);
    return argument_intern(KIND_logic, text.bytes, text.length);
}

/* The pattern of the route that served it, as its framework told by the end of the call: of FastAPI
   `/orders/{id}`. 0 where none did. */
static uint32_t told_route_detail(PyObject *told)
{
    PyObject *route = PyDict_CheckExact(told) ? PyDict_GetItemWithError(told, name_of_route) : NULL;
    PyObject *pattern = route ? attribute_at(route, way_to_path) : NULL;
    bool is_text = pattern && PyUnicode_CheckExact(pattern);
    uint32_t number = is_text ? pattern_detail(method_told(told), pattern) : 0;
    Py_XDECREF(pattern);
    return number;
}

/* The same of an object that its framework keeps it in: the first of the ways that leads to a text. */
static uint32_t kept_route_detail(PyObject *object, PyObject *ways, PyObject *method)
{
    uint32_t number = 0;
    for (Py_ssize_t place = 0; !number && place < PyTuple_GET_SIZE(ways); place++) {
        PyObject *pattern = attribute_at(object, PyTuple_GET_ITEM(ways, place));
        if (pattern && PyUnicode_CheckExact(pattern))
            number = pattern_detail(method, pattern);
        Py_XDECREF(pattern);
    }
    return number;
}

static int plain_begin(void)
{
    if (!url_ways)
        url_ways = Py_BuildValue("((N)(N)(N))", PyUnicode_InternFromString("_scheme"),
                                 PyUnicode_InternFromString("_netloc"), PyUnicode_InternFromString("_path"));
    if (!way_to_path)
        way_to_path = Py_BuildValue("(N)", PyUnicode_InternFromString("path"));
    if (!way_to_scope)
        way_to_scope = Py_BuildValue("(N)", PyUnicode_InternFromString("scope"));
    name_of_route = name_of_route ? name_of_route : PyUnicode_InternFromString("route");
    return url_ways && way_to_path && way_to_scope && name_of_route ? 0 : -1;
}
