/* What CPython 3.11 to 3.13 have alike, and none later (cpython/version.h). */
#pragma once

#include "cpython/locks_until_313.h"

#define THREADS_HAVE_CONTEXTS 0
#define FRAME_TAG 0
#define FRAME_DEPTH offsetof(frame, stacktop)
#define THREAD_TASK 0
#define SMALL_NUMBERS 256

static inline PyCodeObject *code_keep(PyCodeObject *code)
{
    return (PyCodeObject *)Py_NewRef(code);
}

static inline void code_can_be_kept(PyCodeObject *code)
{
    (void)code;
}

static inline PyObject *frame_value(frame *frame, uint32_t index)
{
    return frame->localsplus[index];
}

static inline PyObject *frame_generator(frame *frame)
{
    return (PyObject *)_PyFrame_GetGenerator(frame);
}

#define BRANCH_EVENTS(X) X("BRANCH")
#define BEHIND_JUMPS(X)
#define GENERATOR_USES(X)
#define LOOP_ENDS(X)
