/* What a call runs, imports or opens by a word: a program, a command, a module, a database, as a number in strings. */
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>

extern const char blanks[];

/* The program that is run: the first word of a shell's line, of a path, of the first in a list of words (where a whole
   line may stand). */
uint32_t command_detail(PyObject *command);

/* A program's path or name, or what an open file that is run refers to. */
uint32_t program_detail(PyObject *program);

/* A database's path; of an SQLite URI not what follows the path, which may be a key; nothing of another URI. */
uint32_t database_detail(PyObject *database);

/* The first word; of anything that does not begin like a name, nothing. */
uint32_t word_detail(PyObject *object);

/* The name of a module, as it is imported. */
uint32_t module_detail(PyObject *object);
