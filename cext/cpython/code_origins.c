#include "cpython/code_origins.h"

#include <stdlib.h>
#include <string.h>

#include "core/recorder.h"

enum { ROOTS = 64, LINES_AT_MOST = 16384 };

static char *known_roots[ROOTS]; /* each ends with a slash */
static unsigned known_root_count;

void forget_roots(void)
{
    while (known_root_count)
        free(known_roots[--known_root_count]);
}

bool add_known_root(const char *root)
{
    size_t bytes = strlen(root);
    char *kept = known_root_count < ROOTS ? malloc(bytes + 2) : NULL;
    if (!kept)
        return false;
    memcpy(kept, root, bytes + 1);
    if (!bytes || root[bytes - 1] != '/')
        memcpy(kept + bytes, "/", 2);
    known_roots[known_root_count++] = kept;
    return true;
}

static bool is_below_known_root(const char *file)
{
    for (unsigned index = 0; index < known_root_count; index++)
        if (strncmp(file, known_roots[index], strlen(known_roots[index])) == 0)
            return true;
    return false;
}

static const char *plain_text(PyObject *text)
{
    const char *plain = text && PyUnicode_CheckExact(text) ? PyUnicode_AsUTF8(text) : NULL;
    if (!plain)
        PyErr_Clear();
    return plain;
}

/* The directory of sys.path that the file lies below was put there after the beginning: the log says so. */
static void note_root(const char *file)
{
    PyObject *path = PySys_GetObject("path");
    if (!path || !PyList_CheckExact(path) || known_root_count == ROOTS)
        return;
    for (Py_ssize_t index = 0; index < PyList_GET_SIZE(path); index++) {
        const char *root = plain_text(PyList_GET_ITEM(path, index));
        size_t bytes = root ? strlen(root) : 0;
        if (bytes && root[0] == '/' && strncmp(file, root, bytes) == 0 && (root[bytes - 1] == '/' || file[bytes] == '/')) {
            if (add_known_root(root))
                recorder_note_root(root);
            return;
        }
    }
}

static PyObject *linecache_entry(PyObject *file)
{
    PyObject *modules = PyImport_GetModuleDict();
    PyObject *module = modules && PyDict_CheckExact(modules) ? PyDict_GetItemString(modules, "linecache") : NULL;
    PyObject *names = module && PyModule_CheckExact(module) ? PyModule_GetDict(module) : NULL;
    PyObject *cache = names ? PyDict_GetItemString(names, "cache") : NULL;
    return cache && PyDict_CheckExact(cache) ? PyDict_GetItem(cache, file) : NULL;
}

/* The lines of an entry that stands for no file (it has no time of change), or NULL. */
static PyObject *lines_of_no_file(PyObject *entry)
{
    if (!entry || !PyTuple_CheckExact(entry) || PyTuple_GET_SIZE(entry) != 4 || PyTuple_GET_ITEM(entry, 1) != Py_None)
        return NULL;
    PyObject *lines = PyTuple_GET_ITEM(entry, 2);
    if (!PyList_CheckExact(lines) || PyList_GET_SIZE(lines) > LINES_AT_MOST)
        return NULL;
    for (Py_ssize_t index = 0; index < PyList_GET_SIZE(lines); index++)
        if (!PyUnicode_CheckExact(PyList_GET_ITEM(lines, index)))
            return NULL;
    return lines;
}

static void note_text(PyObject *lines, uint32_t name)
{
    PyObject *nothing = PyUnicode_New(0, 0);
    PyObject *text = nothing ? PyUnicode_Join(nothing, lines) : NULL;
    Py_ssize_t bytes = 0;
    const char *plain = text ? PyUnicode_AsUTF8AndSize(text, &bytes) : NULL;
    if (plain)
        recorder_note_text(name, plain, (size_t)bytes);
    PyErr_Clear();
    Py_XDECREF(text);
    Py_XDECREF(nothing);
}

/* Several texts may have these names, and what `-c` was given may be a secret. */
static bool is_anybodys(const char *file)
{
    return strcmp(file, "<string>") == 0 || strcmp(file, "<stdin>") == 0 || strncmp(file, "<frozen ", 8) == 0;
}

void note_source(PyObject *file, uint32_t name)
{
    const char *plain = plain_text(file);
    if (!plain || is_anybodys(plain))
        return;
    PyObject *lines = lines_of_no_file(linecache_entry(file));
    PyErr_Clear();
    if (lines)
        note_text(lines, name);
    else if (plain[0] == '/' && !is_below_known_root(plain))
        note_root(plain);
}
