/* The static pools of stubs, one for each signature of a C function that can be put in another's place.

   CPython hands a C function no hint of which definition it was called through, so each stub is a function of its own
   that knows its slot, and jumps to the slot's body with it. The bodies are the shims (timing/bodies.pxi). */
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdbool.h>
#include <stdint.h>

#include "core/kinds.h"
#include "core/levels.h"
#include "core/recorder.h"
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

/* Is this call left out by the filter, and nothing of it to be known? (hooks/filtering.h) */
static bool is_left_out_at_once(const struct slot *slot);

/* A call of which nothing is recorded goes straight on. */
static inline bool goes_straight_on(const struct slot *slot)
{
    uint64_t said = said_from_outside();
    if (LIKELY(said == recorder.heeded))
        return UNLIKELY(slot->watched) && is_left_out_at_once(slot);
    if (!(uint32_t)said || !slot->through)
        return false;
    recorder.heeded = LOOKED_AWAY;
    return true;
}

#define STRIP(...) __VA_ARGS__

#define TYPE_OF_FUNCTION(name, result, declared, passed) \
    typedef result (*name##_function) declared; \
    typedef result (*name##_body)(struct slot *, STRIP declared);

SIGNATURES(TYPE_OF_FUNCTION)

#define STUB(index, name, result, declared, passed) \
    static result stub_##name##_##index declared \
    { \
        struct slot *slot = &slots_##name[0x##index]; \
        if (UNLIKELY(goes_straight_on(slot))) \
            return ((name##_function)slot->real) passed; \
        return ((name##_body)slot->body)(slot, STRIP passed); \
    }

#define REFERENCE(index, name, result, declared, passed) (void *)stub_##name##_##index,

#define SIXTEEN(X, digit, ...) \
    X(digit##0, __VA_ARGS__) X(digit##1, __VA_ARGS__) X(digit##2, __VA_ARGS__) X(digit##3, __VA_ARGS__) \
    X(digit##4, __VA_ARGS__) X(digit##5, __VA_ARGS__) X(digit##6, __VA_ARGS__) X(digit##7, __VA_ARGS__) \
    X(digit##8, __VA_ARGS__) X(digit##9, __VA_ARGS__) X(digit##a, __VA_ARGS__) X(digit##b, __VA_ARGS__) \
    X(digit##c, __VA_ARGS__) X(digit##d, __VA_ARGS__) X(digit##e, __VA_ARGS__) X(digit##f, __VA_ARGS__)

#define EACH_STUB(X, ...) \
    SIXTEEN(X, 0, __VA_ARGS__) SIXTEEN(X, 1, __VA_ARGS__) SIXTEEN(X, 2, __VA_ARGS__) SIXTEEN(X, 3, __VA_ARGS__) \
    SIXTEEN(X, 4, __VA_ARGS__) SIXTEEN(X, 5, __VA_ARGS__) SIXTEEN(X, 6, __VA_ARGS__) SIXTEEN(X, 7, __VA_ARGS__) \
    SIXTEEN(X, 8, __VA_ARGS__) SIXTEEN(X, 9, __VA_ARGS__) SIXTEEN(X, a, __VA_ARGS__) SIXTEEN(X, b, __VA_ARGS__) \
    SIXTEEN(X, c, __VA_ARGS__) SIXTEEN(X, d, __VA_ARGS__) SIXTEEN(X, e, __VA_ARGS__) SIXTEEN(X, f, __VA_ARGS__)

#define POOL_OF_STUBS(name, result, declared, passed) \
    static struct slot slots_##name[STUBS]; \
    EACH_STUB(STUB, name, result, declared, passed) \
    static void *const stubs_##name[STUBS] = {EACH_STUB(REFERENCE, name, result, declared, passed)};

SIGNATURES(POOL_OF_STUBS)

#define NUMBER_OF_SIGNATURE(name, ...) SIGNATURE_##name,

enum signature { SIGNATURES(NUMBER_OF_SIGNATURE) SIGNATURE_COUNT };

#define ENTRY_OF_POOL(name, ...) [SIGNATURE_##name] = {slots_##name, stubs_##name},

static const struct stub_pool {
    struct slot *slots;
    void *const *stubs;
} stub_pools[SIGNATURE_COUNT] = {SIGNATURES(ENTRY_OF_POOL)};

/* A slot that nobody has, or NULL when the pool is full. */
static struct slot *slot_take(enum signature signature)
{
    for (unsigned index = 0; index < STUBS; index++) {
        struct slot *slot = &stub_pools[signature].slots[index];
        if (!slot->taken) {
            slot->taken = 1;
            return slot;
        }
    }
    return NULL;
}

static void *slot_stub(enum signature signature, const struct slot *slot)
{
    return stub_pools[signature].stubs[slot - stub_pools[signature].slots];
}

/* Have the calls of that number be at `level`, which is lower than before; false where there are no such, or where
   recording itself needs to know of them. */
static bool slots_lower(uint32_t number, enum level level)
{
    bool found = false;
    for (unsigned signature = 0; signature < SIGNATURE_COUNT; signature++)
        for (unsigned index = 0; index < STUBS; index++)
            found |= slot_lower(&stub_pools[signature].slots[index], number, level);
    return found;
}

/* Another filter holds. */
static void slot_watch(struct slot *slot);

static void slots_watch(void)
{
    for (unsigned signature = 0; signature < SIGNATURE_COUNT; signature++)
        for (unsigned index = 0; index < STUBS; index++)
            slot_watch(&stub_pools[signature].slots[index]);
}

/* Is this function one of the stubs? */
static int is_stub(const void *function)
{
    for (unsigned signature = 0; signature < SIGNATURE_COUNT; signature++)
        for (unsigned index = 0; index < STUBS; index++)
            if (stub_pools[signature].stubs[index] == function)
                return 1;
    return 0;
}
