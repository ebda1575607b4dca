/* Putting a stub in the place of a function, and taking it out again. */
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdbool.h>

#include "hooks/stubs.h"

/* Whether this address can be written to. The table of a module may be in read-only memory. The last mapping found
   is cached: most tables are in the interpreter's own data. */
bool is_writable(const void *address);

/* The definition that a function, a method or a class method is made from; NULL if it has none. */
PyMethodDef *definition_of(PyObject *callable);

/* Which pool serves a definition; SIGNATURE_COUNT where none does. */
enum signature signature_of(const PyMethodDef *definition);

/* Other threads may be calling it. */
static inline void exchange_in_definition(PyMethodDef *definition, void *function)
{
    __atomic_store_n((void **)&definition->ml_meth, function, __ATOMIC_RELEASE);
}

bool takes_one_argument(const PyMethodDef *definition);

bool takes_arguments(const PyMethodDef *definition);

void **type_slot(PyTypeObject *type, const char *name, enum signature *signature);

/* The same for it and all its subclasses, which copied the slot when they were made. False with an exception set if
   the subclasses cannot be listed. */
bool exchange_in_types(PyTypeObject *type, const char *name, void *from, void *to);

/* One thread at a time installs shims; code that it runs meanwhile and that comes here again gets false, and so does
   a thread that waited too long. */
bool installing_begin(void);
void installing_end(void);
