#include "hooks/environment_variables.h"

#include <string.h>

#include "hooks/object_texts.h"

bool is_list_of_bytes(PyObject *list)
{
    if (!PyList_CheckExact(list))
        return false;
    for (Py_ssize_t place = 0; place < PyList_GET_SIZE(list); place++)
        if (!PyBytes_CheckExact(PyList_GET_ITEM(list, place)))
            return false;
    return true;
}

static Py_ssize_t place_in_list(PyObject *list, const char *name)
{
    size_t bytes = strlen(name);
    for (Py_ssize_t place = 0; place < PyList_GET_SIZE(list); place++) {
        const char *text = PyBytes_AS_STRING(PyList_GET_ITEM(list, place));
        if (strncmp(text, name, bytes) == 0 && text[bytes] == '=')
            return place;
    }
    return -1;
}

/* The key under which a dictionary has the name, a new reference; NULL if it has not, or with an exception set. */
static PyObject *key_in(PyObject *dictionary, const char *name)
{
    PyObject *keys[] = {PyUnicode_FromString(name), PyBytes_FromString(name)}, *found = NULL;
    for (int each = 0; each < 2; each++) {
        if (!found && keys[each] && PyDict_Contains(dictionary, keys[each]) == 1)
            found = Py_NewRef(keys[each]);
        Py_XDECREF(keys[each]);
    }
    return found;
}

PyObject *value_of(PyObject *environment, const char *name)
{
    if (PyList_Check(environment)) {
        Py_ssize_t place = place_in_list(environment, name);
        return place < 0 ? NULL
                         : PyBytes_FromString(PyBytes_AS_STRING(PyList_GET_ITEM(environment, place)) + strlen(name) + 1);
    }
    PyObject *key = key_in(environment, name);
    PyObject *value = key ? PyDict_GetItemWithError(environment, key) : NULL;
    Py_XDECREF(key);
    return value ? encoded(value) : NULL;
}

bool has_variable(PyObject *environment, const char *name)
{
    if (PyList_Check(environment))
        return place_in_list(environment, name) >= 0;
    PyObject *key = key_in(environment, name);
    Py_XDECREF(key);
    return key != NULL;
}

static int put_into_list(PyObject *list, const char *name, const char *value)
{
    Py_ssize_t place = place_in_list(list, name);
    PyObject *text = PyBytes_FromFormat("%s=%s", name, value);
    if (!text)
        return -1;
    if (place >= 0)
        return PyList_SetItem(list, place, text);
    int failed = PyList_Append(list, text);
    Py_DECREF(text);
    return failed;
}

static int put_into_dictionary(PyObject *dictionary, const char *name, const char *value)
{
    PyObject *key = key_in(dictionary, name), *text = PyBytes_FromString(value);
    if (!key && !PyErr_Occurred())
        key = PyBytes_FromString(name);
    int failed = key && text ? PyDict_SetItem(dictionary, key, text) : -1;
    Py_XDECREF(key);
    Py_XDECREF(text);
    return failed;
}

int put_variable(PyObject *environment, const char *name, const char *value)
{
    return PyList_Check(environment) ? put_into_list(environment, name, value)
                                     : put_into_dictionary(environment, name, value);
}
