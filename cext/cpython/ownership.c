#define _GNU_SOURCE
#include "cpython/ownership.h"

#include <string.h>

#include "core/generated_names.h"
#include "core/installed_names.h"
#include "core/path_name.h"
#include "core/recorder.h"

enum { OWN_PREFIXES = 32, PREFIX_BYTES = 1024 };

/* The directories of the standard library, and files of ours and of an installer's. */
static char library_prefixes[OWN_PREFIXES][PREFIX_BYTES];
static unsigned library_prefix_count;

uint32_t intern_text(PyObject *text)
{
    PyObject *encoded = PyUnicode_EncodeFSDefault(text);
    if (!encoded) {
        PyErr_Clear();
        return string_intern("?", 1);
    }
    uint32_t number = string_intern(PyBytes_AS_STRING(encoded), (size_t)PyBytes_GET_SIZE(encoded));
    Py_DECREF(encoded);
    return number;
}

bool is_own_name(const char *name)
{
    size_t bytes = strlen(name);
    if (is_generated_name(name, bytes) || is_installed_name(name, bytes))
        return false;
    for (unsigned index = 0; index < library_prefix_count; index++)
        if (strncmp(name, library_prefixes[index], strlen(library_prefixes[index])) == 0)
            return false;
    return true;
}

bool name_of_file(PyObject *file, char room[FILE_ROOM])
{
    PyObject *encoded = PyUnicode_EncodeFSDefault(file);
    size_t bytes = encoded ? (size_t)PyBytes_GET_SIZE(encoded) : FILE_ROOM;
    bool fits = bytes < FILE_ROOM && strlen(PyBytes_AS_STRING(encoded)) == bytes;
    if (fits) {
        memcpy(room, PyBytes_AS_STRING(encoded), bytes + 1);
        path_name(room, "");
    }
    PyErr_Clear();
    Py_XDECREF(encoded);
    return fits;
}

uint32_t intern_file(PyObject *file)
{
    char name[FILE_ROOM];
    return name_of_file(file, name) ? string_intern(name, strlen(name)) : intern_text(file);
}

uint32_t is_own(PyObject *file)
{
    char name[FILE_ROOM];
    return !name_of_file(file, name) || is_own_name(name);
}

void forget_library_prefixes(void)
{
    library_prefix_count = 0;
}

bool add_library_prefix(const char *prefix)
{
    if (library_prefix_count == OWN_PREFIXES || strlen(prefix) >= PREFIX_BYTES)
        return false;
    strcpy(library_prefixes[library_prefix_count++], prefix);
    return true;
}
