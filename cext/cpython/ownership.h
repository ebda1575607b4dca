/* Whether code is the program's own, or belongs to the standard library or an installed package. */
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdbool.h>

#include "core/visible.h"

/* Is the code of this file the program's own? An exception must not be set. */
VISIBLE uint32_t is_own(PyObject *file);

/* The same of its name, as the file system has it. */
bool is_own_name(const char *name);

/* Code below this directory is a library's, not the program's own. False when there are too many. */
VISIBLE bool add_library_prefix(const char *prefix);
VISIBLE void forget_library_prefixes(void);

/* The number of a text, as the file system has it: a file's name need not be UTF-8. */
VISIBLE uint32_t intern_text(PyObject *text);

/* The same of a code object's file, by its one name (core/path_name.h). */
uint32_t intern_file(PyObject *file);

/* That name, in `room`; false if it has no room there. An exception must not be set. */
enum { FILE_ROOM = 4096 };
VISIBLE bool name_of_file(PyObject *file, char room[FILE_ROOM]);
