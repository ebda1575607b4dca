/* What CPython 3.13 and all later versions have alike (cpython/version.h). */
#pragma once

#include "cpython/version_since_312.h"

#define HAS_ENTRY_REFERENCES 1
#define SPAWN_TAKES_NONE 1

#define THREAD_FRAME current_frame
#define THREAD_STEPS 0
#define STEP_FRAME 0
#define FRAME_CODE f_executable
#define FRAME_PLACE instr_ptr

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
