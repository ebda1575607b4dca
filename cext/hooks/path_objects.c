#include "hooks/path_objects.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cpython/attributes.h"
#include "hooks/object_texts.h"

/* --- pathlib */

static bool is_class_of_pathlib(PyObject *type, const char *name)
{
    PyObject *found = entry_of_module("pathlib", name);
    Py_XDECREF(found);
    return found == type;
}

static PyObject *list_named(PyObject *path, const char *name)
{
    PyObject *interned = PyUnicode_InternFromString(name), *list = interned ? member_of(path, interned) : NULL, *items = NULL;
    if (list && (PyList_CheckExact(list) || PyTuple_CheckExact(list)))
        items = items_as_now(list);
    Py_XDECREF(list);
    Py_XDECREF(interned);
    PyErr_Clear();
    return items;
}

/* What it was made of, as its text is made only once somebody asks for it: up to 3.11 split at each `/`, then as given. */
static PyObject *parts_of(PyObject *path)
{
    PyObject *type = (PyObject *)Py_TYPE(path);
    if (!is_class_of_pathlib(type, "PosixPath") && !is_class_of_pathlib(type, "PurePosixPath"))
        return NULL;
    PyObject *parts = list_named(path, "_raw_paths");
    return parts ? parts : list_named(path, "_parts");
}

static const char *without_here(const char *path)
{
    while (path[0] == '.' && path[1] == '/')
        path += 1 + strspn(path + 1, "/");
    return path;
}

static bool join(char whole[PATH_BYTES], const char *part)
{
    const char *rest = without_here(part);
    size_t bytes = *rest == '/' ? 0 : strlen(whole);
    bool divided = bytes == 0 || whole[bytes - 1] == '/';
    int added = snprintf(whole + bytes, PATH_BYTES - bytes, "%s%s", divided ? "" : "/", rest);
    return added >= 0 && bytes + (size_t)added < PATH_BYTES;
}

static PyObject *joined(PyObject *parts)
{
    char whole[PATH_BYTES] = "";
    bool fits = true;
    for (Py_ssize_t each = 0; fits && each < PySequence_Fast_GET_SIZE(parts); each++) {
        PyObject *part = encoded(PySequence_Fast_GET_ITEM(parts, each));
        fits = part && join(whole, PyBytes_AS_STRING(part));
        Py_XDECREF(part);
    }
    return fits ? PyBytes_FromString(*whole ? whole : ".") : NULL;
}

PyObject *encoded_path(PyObject *path)
{
    PyObject *bytes = encoded(path);
    if (bytes || PyUnicode_Check(path))
        return bytes;
    struct raised raised = raised_keep();
    PyObject *parts = parts_of(path);
    bytes = parts ? joined(parts) : NULL;
    Py_XDECREF(parts);
    raised_restore(raised);
    return bytes;
}

/* --- where it leads from */

bool absolute_path(const char *directory, const char *path, char whole[PATH_BYTES])
{
    bool is_absolute = *path == '/' || (directory && *directory == '/');
    if (is_absolute)
        *whole = 0;
    else if (!getcwd(whole, PATH_BYTES))
        return false;
    return (!directory || join(whole, directory)) && join(whole, path);
}
