/* What is kept with code objects: each keeper has an index, and what it keeps is let go of with the code object. */
#pragma once

#include "core/visible.h"
#include "cpython/frame.h"

/* How a code object keeps its extra data in all versions; whether it does is asked at the first use. */
struct code_extras {
    Py_ssize_t size;
    void *extras[];
};

VISIBLE extern bool extras_lie_as_known;

/* An index; below 0 where there is none left. */
int code_extra_index(freefunc release);

/* 0, or an exception is set. */
int code_extra_set(PyCodeObject *code, int index, void *value);

/* The same as code_extra, by CPython's function. */
VISIBLE void *code_extra_asked(PyCodeObject *code, int index);

/* Other threads may put something there, or move it, meanwhile: what was is freed when no thread can look at it any more. */
static inline void *code_extra_direct(const PyCodeObject *code, int index)
{
    const struct code_extras *known = __atomic_load_n((void *const *)&code->co_extra, __ATOMIC_ACQUIRE);
    return known && index < known->size ? __atomic_load_n(&known->extras[index], __ATOMIC_ACQUIRE) : NULL;
}

/* What was kept with the code object, or NULL. */
static inline void *code_extra(PyCodeObject *code, int index)
{
    return LIKELY(extras_lie_as_known) ? code_extra_direct(code, index) : code_extra_asked(code, index);
}
