/* Code that is about to be executed for the first time, and gets probes before that (3.11). The built-in functions
   exec and eval, which execute modules, have their definitions changed in place; the interpreter itself executes the
   main script. Its code is known when its frame exists, so until then a frame evaluation function of ours (PEP 523) is
   installed. */
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
