/* Data kept with code objects: each keeper has an index, and its data is freed with the code object. */
#pragma once

#include "core/visible.h"
#include "cpython/frame.h"

/* How a code object keeps its extra data in all versions; whether that is true is checked at the first use. */
struct code_extras {
    Py_ssize_t size;
    void *extras[];
};

VISIBLE extern bool extras_lie_as_known;

/* An index; below 0 if there is none left. */
int code_extra_index(freefunc release);

/* 0, or an exception is set. */
int code_extra_set(PyCodeObject *code, int index, void *value);

/* The same as code_extra, by CPython's function. */
VISIBLE void *code_extra_asked(PyCodeObject *code, int index);

/* Other threads may add data, or move it, meanwhile: old memory is freed when no thread can read it any more. */
static inline void *code_extra_direct(const PyCodeObject *code, int index)
{
    const struct code_extras *known = __atomic_load_n((void *const *)&code->co_extra, __ATOMIC_ACQUIRE);
    return known && index < known->size ? __atomic_load_n(&known->extras[index], __ATOMIC_ACQUIRE) : NULL;
}

/* The data kept with the code object, or NULL. */
static inline void *code_extra(PyCodeObject *code, int index)
{
    return LIKELY(extras_lie_as_known) ? code_extra_direct(code, index) : code_extra_asked(code, index);
}
