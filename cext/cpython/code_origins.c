#include "cpython/code_origins.h"

#include <stdlib.h>
#include <string.h>

#include "core/recorder.h"
#include "cpython/attributes.h"
#include "cpython/ownership.h"
#include "cpython/side_lock.h"

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
    known_roots[known_root_count] = kept;
    __atomic_store_n(&known_root_count, known_root_count + 1, __ATOMIC_RELEASE); /* others look at them meanwhile */
    return true;
}

static bool is_below_known_root(const char *file)
{
    unsigned count = __atomic_load_n(&known_root_count, __ATOMIC_ACQUIRE);
    for (unsigned index = 0; index < count; index++)
        if (strncmp(file, known_roots[index], strlen(known_roots[index])) == 0)
            return true;
    return false;
}

/* If the file is below a directory that was added to sys.path later, the log gets that directory. */
static void note_root_among(PyObject *roots, const char *file)
{
    char root[FILE_ROOM];
    for (Py_ssize_t index = 0; known_root_count < ROOTS && index < PySequence_Fast_GET_SIZE(roots); index++) {
        PyObject *each = PySequence_Fast_GET_ITEM(roots, index);
        size_t bytes = PyUnicode_CheckExact(each) && name_of_file(each, root) ? strlen(root) : 0;
        if (bytes && root[0] == '/' && strncmp(file, root, bytes) == 0 && (root[bytes - 1] == '/' || file[bytes] == '/')) {
            if (add_known_root(root))
                recorder_note_root(root);
            return;
        }
    }
}

static void note_root(const char *file)
{
    PyObject *path = entry_of_module("sys", "path");
    PyObject *roots = path && PyList_CheckExact(path) ? items_as_now(path) : NULL;
    if (roots && side_begin(SIDE_ROOTS)) {
        if (!is_below_known_root(file))
            note_root_among(roots, file);
        side_end(SIDE_ROOTS);
    }
    Py_XDECREF(roots);
    Py_XDECREF(path);
}

/* A new reference, or NULL. */
static PyObject *linecache_entry(PyObject *file)
{
    PyObject *cache = entry_of_module("linecache", "cache");
    PyObject *entry = cache && PyDict_CheckExact(cache) ? entry_at(cache, file) : NULL;
    Py_XDECREF(cache);
    return entry;
}

/* The lines of an entry without a file (it has no modification time): a new reference, or NULL. */
static PyObject *lines_of_no_file(PyObject *entry)
{
    if (!entry || !PyTuple_CheckExact(entry) || PyTuple_GET_SIZE(entry) != 4 || PyTuple_GET_ITEM(entry, 1) != Py_None)
        return NULL;
    PyObject *lines = PyTuple_GET_ITEM(entry, 2);
    bool is_text = true;
    if (!PyList_CheckExact(lines) || PyList_GET_SIZE(lines) > LINES_AT_MOST || !(lines = items_as_now(lines)))
        return NULL;
    for (Py_ssize_t index = 0; index < PySequence_Fast_GET_SIZE(lines); index++)
        if (!PyUnicode_CheckExact(PySequence_Fast_GET_ITEM(lines, index)))
            is_text = false;
    if (!is_text)
        Py_CLEAR(lines);
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
    char plain[FILE_ROOM];
    if (!name_of_file(file, plain) || is_anybodys(plain))
        return;
    PyObject *entry = linecache_entry(file), *lines = lines_of_no_file(entry);
    PyErr_Clear();
    if (lines)
        note_text(lines, name);
    else if (plain[0] == '/' && !is_below_known_root(plain))
        note_root(plain);
    Py_XDECREF(lines);
    Py_XDECREF(entry);
}
