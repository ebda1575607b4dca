#include "hooks/environment_copies.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/child_variables.h"
#include "cpython/attributes.h"
#include "cpython/side_lock.h"
#include "cpython/version.h"
#include "hooks/environment_variables.h"

static PyObject *list_of_own(void)
{
    PyObject *list = PyList_New(0);
    for (char **text = environ; list && text && *text; text++) {
        PyObject *bytes = PyBytes_FromString(*text);
        if (!bytes || PyList_Append(list, bytes))
            Py_CLEAR(list);
        Py_XDECREF(bytes);
    }
    return list;
}

/* The dictionary behind os.environ, where `mapping` is that or another of its type; NULL if not. */
static PyObject *data_of_environ(PyObject *mapping)
{
    PyObject *type = entry_of_module("os", "_Environ");
    bool is_one = type && (PyObject *)Py_TYPE(mapping) == type;
    Py_XDECREF(type);
    if (!is_one)
        return NULL;
    PyObject *data = PyObject_GetAttrString(mapping, "_data");
    if (data && !PyDict_CheckExact(data))
        Py_CLEAR(data);
    return data;
}

/* A list of texts as a dictionary; of a name that is there twice the first counts, as for getenv(3). */
static PyObject *dictionary_of(PyObject *list)
{
    PyObject *dictionary = list ? PyDict_New() : NULL;
    for (Py_ssize_t place = 0; dictionary && place < PyList_GET_SIZE(list); place++) {
        const char *text = PyBytes_AS_STRING(PyList_GET_ITEM(list, place));
        size_t bytes = strcspn(text, "=");
        PyObject *name = PyBytes_FromStringAndSize(text, (Py_ssize_t)bytes);
        PyObject *value = PyBytes_FromString(text + bytes + (text[bytes] == '='));
        if (!name || !value || !PyDict_SetDefault(dictionary, name, value))
            Py_CLEAR(dictionary);
        Py_XDECREF(name);
        Py_XDECREF(value);
    }
    Py_XDECREF(list);
    return dictionary;
}

/* The process's own, in the form that the call takes; NULL if None is not possible for it. */
static PyObject *copy_of_own(enum passes passes)
{
    switch (passes) {
    case PASSES_list:
    case PASSES_own:
    case PASSES_shell:
        return list_of_own();
    case PASSES_spawn:
    case PASSES_search:
        return SPAWN_TAKES_NONE ? dictionary_of(list_of_own()) : NULL;
    default:
        return NULL;
    }
}

PyObject *copy_of(PyObject *given, enum passes passes)
{
    if (given == Py_None)
        return copy_of_own(passes);
    if (PyDict_CheckExact(given))
        return PyDict_Copy(given);
    if (passes == PASSES_list)
        return is_list_of_bytes(given) ? PyList_GetSlice(given, 0, PyList_GET_SIZE(given)) : NULL;
    PyObject *data = data_of_environ(given);
    PyObject *copy = data ? PyDict_Copy(data) : NULL;
    Py_XDECREF(data);
    return copy;
}

static bool is_text(PyObject *object, const char *text)
{
    if (object && PyBytes_CheckExact(object))
        return strcmp(PyBytes_AS_STRING(object), text) == 0;
    return object && PyUnicode_CheckExact(object) && PyUnicode_CompareWithASCIIString(object, text) == 0;
}

static bool has_path_in_list(PyObject *list, const char *path)
{
    for (Py_ssize_t place = 0; place < PyList_GET_SIZE(list); place++) {
        PyObject *text = PyList_GET_ITEM(list, place);
        if (PyBytes_CheckExact(text) && strncmp(PyBytes_AS_STRING(text), "PATH=", 5) == 0)
            return strcmp(PyBytes_AS_STRING(text) + 5, path) == 0;
    }
    return false;
}

static bool has_path_in_dictionary(PyObject *dictionary, const char *path)
{
    PyObject *name, *value, *as_now = IS_FREE_THREADED ? PyDict_Copy(dictionary) : Py_NewRef(dictionary);
    bool has = false, found = !as_now;
    for (Py_ssize_t place = 0; !found && PyDict_Next(as_now, &place, &name, &value);) {
        found = is_text(name, "PATH");
        has = found && is_text(value, path);
    }
    Py_XDECREF(as_now);
    return has;
}

bool has_our_path(PyObject *given)
{
    const char *path = getenv("PATH");
    if (given == Py_None || !path)
        return given == Py_None;
    if (PyList_CheckExact(given))
        return has_path_in_list(given, path);
    PyObject *data = PyDict_CheckExact(given) ? Py_NewRef(given) : data_of_environ(given);
    bool has = data && has_path_in_dictionary(data, path);
    Py_XDECREF(data);
    return has;
}

static bool own_says_off(void)
{
    const char *said = getenv(VARIABLE_SWITCH);
    return said && switches_off(said);
}

bool says_off(PyObject *given)
{
    if (given == Py_None)
        return own_says_off();
    bool is_plain = PyDict_CheckExact(given) || is_list_of_bytes(given);
    PyObject *data = is_plain ? Py_NewRef(given) : data_of_environ(given);
    PyObject *said = data ? value_of(data, VARIABLE_SWITCH) : NULL;
    bool off = said && PyBytes_CheckExact(said) && switches_off(PyBytes_AS_STRING(said));
    PyErr_Clear();
    Py_XDECREF(said);
    Py_XDECREF(data);
    return off;
}
