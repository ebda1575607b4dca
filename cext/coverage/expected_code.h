/* Code that is about to be executed for the first time, and is given probes before that (3.11).

   Modules are executed by the built-in functions exec and eval, whose definitions are changed in place; the main script by the
   interpreter itself. Which code that will be is known when its frame is there: for so long a frame evaluation function of ours
   (PEP 523) is. */
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdbool.h>

/* Have exec and eval say what they execute; why not, or NULL. */
const char *expecting_begin(void);
void expecting_end(void);

/* The main script has not begun yet. */
void expect_main(void);

bool is_named(PyObject *name, const char *wanted);
