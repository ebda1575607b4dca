/* Putting a stub in the place of a function, and taking it out again. */
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdbool.h>

#include "hooks/stubs.h"

/* May this address be written to? The table of a module may lie in read-only memory. The mapping found last is kept:
   most tables lie in the interpreter's own data. */
bool is_writable(const void *address);

/* The definition that a function, a method or a class method is made from; NULL where it has none. */
PyMethodDef *definition_of(PyObject *callable);

/* Which pool serves a definition; SIGNATURE_COUNT where none does. */
enum signature signature_of(const PyMethodDef *definition);

bool takes_one_argument(const PyMethodDef *definition);

bool takes_arguments(const PyMethodDef *definition);

void **type_slot(PyTypeObject *type, const char *name, enum signature *signature);

/* The same for it and all its subclasses, which copied the slot when they were made. False with an exception set where
   the subclasses cannot be had. */
bool exchange_in_types(PyTypeObject *type, const char *name, void *from, void *to);
