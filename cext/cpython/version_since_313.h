/* What CPython 3.13 and all later versions have alike (cpython/version.h). */
#pragma once

#include "cpython/version_since_312.h"

static inline PyThreadState *running_state(void)
{
    return PyThreadState_GetUnchecked();
}

static inline frame *frame_running(PyThreadState *state)
{
    return state->current_frame;
}

static inline const _Py_CODEUNIT *frame_place(const frame *frame)
{
    return frame->instr_ptr;
}

static inline bool interpreter_ends(void)
{
    return Py_IsFinalizing();
}

#define STORES_SINCE_313(X) X(STORE_SLICE) X(STORE_FAST_STORE_FAST) X(STORE_FAST_LOAD_FAST)
