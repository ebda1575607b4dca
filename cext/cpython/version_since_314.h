/* What CPython 3.14 and all later versions have alike: tagged references, and frames of the interpreter's own, which have no
   code (cpython/version.h). */
#pragma once

#include "cpython/public_since_314.h"
#include "cpython/version_since_313.h"

#define FRAME_TAG 3
#define FRAME_DEPTH 0
#define FRAME_NO_CODE FRAME_OWNED_BY_INTERPRETER
#define SMALL_NUMBERS (_PY_NSMALLPOSINTS - 1) /* 256; 1024 from 3.15 on */
#define THREAD_TASK offsetof(_PyThreadStateImpl, asyncio_running_task)

static inline PyCodeObject *frame_code(frame *frame)
{
    return _PyFrame_GetCode(frame);
}

static inline PyObject *frame_value(frame *frame, uint32_t index)
{
    return PyStackRef_AsPyObjectBorrow(frame->localsplus[index]);
}

static inline PyObject *frame_generator(frame *frame)
{
    return (PyObject *)_PyGen_GetGeneratorFromFrame(frame);
}

static inline bool frame_is_interpreters(const frame *frame)
{
    return frame->owner >= FRAME_OWNED_BY_INTERPRETER;
}

#define BRANCH_EVENTS(X) X("BRANCH_LEFT") X("BRANCH_RIGHT")
#define BEHIND_JUMPS(X) X(NOT_TAKEN)
#define GENERATOR_USES(X) X(TO_BOOL) X(LIST_APPEND) X(SET_ADD)
#define LOOP_ENDS(X) X(END_FOR) X(POP_ITER)
#define ENDS_OF_VERSION(X) STORES_SINCE_313(X) X(POP_ITER)
#define RETURNS(X) X(RETURN_VALUE)
