/* Paths as bytes, as the file system has them: texts, and the objects of pathlib. None of the program's code is run. */
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdbool.h>

#include "core/open_file.h"

/* A new reference; NULL for other objects, and for a class of the program's own, which may have another path. */
PyObject *encoded_path(PyObject *path);

/* Where a process that begins in `directory` finds `path`; NULL is our own directory. False if it is too long. */
bool absolute_path(const char *directory, const char *path, char whole[PATH_BYTES]);
