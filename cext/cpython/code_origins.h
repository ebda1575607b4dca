/* Where the program's own code comes from, noted at first sight of it: directories that it was imported from, and the
   text of code that lies in no file. Plain reads of sys.path and of linecache.cache; nobody's code is run. */
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
