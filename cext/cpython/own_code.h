/* Whether the code that a frame runs is the program's own. Its file decides; for code compiled from a string
   (`<string>`), the module it runs in decides. */
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdbool.h>

#include "core/visible.h"
#include "cpython/version.h"

/* The name of the module with a frame's globals, or NULL. Borrowed. */
VISIBLE PyObject *module_of(frame *here);

/* The name under which a module that runs as the main one would be imported: with `python -m` it is in its specification. A
   new reference, or NULL. */
VISIBLE PyObject *module_run_as_main(frame *here);

/* Is the code the program's own? An exception must not be set. */
VISIBLE bool is_own_code(const PyCodeObject *code, frame *here);
