/* The origin of the program's own code, recorded when it is first seen: directories that it was imported from, and
   the text of code without a file. Plain reads of sys.path and of linecache.cache; no code of the program runs. */
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdbool.h>

#include "core/visible.h"

/* Code below this directory needs no noting. False when there are too many. */
VISIBLE bool add_known_root(const char *root);
VISIBLE void forget_roots(void);

/* `name` is the number of the file's name. An exception must not be set. */
void note_source(PyObject *file, uint32_t name);
