/* The static pools of stubs, one for each signature of a C function that can be put in another's place.

   CPython hands a C function no hint of which definition it was called through, so each stub is a function of its own
   that knows its slot, and jumps to the slot's body with it. The bodies are the shims (hooks/bodies.h). */
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdbool.h>
#include <stdint.h>

#include "core/levels.h"
#include "hooks/slot.h"

/* name, what a body takes after its slot, as declared, as passed on; what it gives; how many stubs.
   `pair` serves METH_NOARGS, METH_O and METH_VARARGS; `triple` METH_VARARGS | METH_KEYWORDS and tp_call; `vector` the
   vectorcall of a Python function. */
#define SIGNATURES(X) \
    X(pair, PyObject *, (PyObject *self, PyObject *argument), (self, argument)) \
    X(triple, PyObject *, (PyObject *self, PyObject *arguments, PyObject *keywords), (self, arguments, keywords)) \
    X(fast, PyObject *, (PyObject *self, PyObject *const *arguments, Py_ssize_t count), (self, arguments, count)) \
    X(fast_keywords, PyObject *, \
      (PyObject *self, PyObject *const *arguments, Py_ssize_t count, PyObject *names), \
      (self, arguments, count, names)) \
    X(method, PyObject *, \
      (PyObject *self, PyTypeObject *type, PyObject *const *arguments, size_t count, PyObject *names), \
      (self, type, arguments, count, names)) \
    X(vector, PyObject *, \
      (PyObject *self, PyObject *const *arguments, size_t count, PyObject *names), \
      (self, arguments, count, names)) \
    X(unary, PyObject *, (PyObject *self), (self)) \
    X(initialise, int, (PyObject *self, PyObject *arguments, PyObject *keywords), (self, arguments, keywords)) \
    X(finish, void, (PyObject *self), (self))

enum { STUBS = 256 };

#define STRIP(...) __VA_ARGS__
#define TYPE_OF_FUNCTION(name, result, declared, passed) \
    typedef result (*name##_function) declared; \
    typedef result (*name##_body)(struct slot *, STRIP declared);
SIGNATURES(TYPE_OF_FUNCTION)

#define NUMBER_OF_SIGNATURE(name, ...) SIGNATURE_##name,
enum signature { SIGNATURES(NUMBER_OF_SIGNATURE) SIGNATURE_COUNT };

/* A free slot, for a stub in place of `real`; NULL if the pool is full. */
struct slot *slot_take(enum signature signature, const void *real);

/* The same for the vectorcall of that Python function, beyond the pool (hooks/further_slots.h); NULL if there is no memory. */
struct slot *slot_take_further(PyObject *function);

/* From now on it may be filled in, for as long as it is not fit: other threads may call through the stub that it had before. */
void slot_is_unfit(struct slot *slot);

/* The function that it was for is called no more through its stub. */
void slot_give_back(struct slot *slot);

void *slot_stub(enum signature signature, const struct slot *slot);

/* Have the calls of that number be at `level`, which is lower than before; false if there are no such, or where
   recording itself needs to know of them. */
bool slots_lower(uint32_t number, enum level level);

/* Is this function one of the stubs? */
int is_stub(const void *function);

/* Every slot that was ever taken. */
void slots_each(void (*act)(struct slot *slot));
