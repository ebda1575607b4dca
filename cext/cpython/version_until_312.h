/* What CPython 3.11 and 3.12 have alike, and none later (cpython/version.h). */
#pragma once

#include "cpython/version_until_313.h"

static inline bool plain_lock_fits(PyObject *lock)
{
    return is_semaphore_lock(lock);
}

static inline bool is_free_plain(PyObject *lock)
{
    return is_free_semaphore_lock(lock);
}

#define HAS_ENTRY_REFERENCES 0
#define SPAWN_TAKES_NONE 0

#define THREAD_FRAME cframe
#define THREAD_STEPS 1
#define STEP_FRAME offsetof(_PyCFrame, current_frame)
#define FRAME_CODE f_code
#define FRAME_PLACE prev_instr

static inline PyThreadState *running_state(void)
{
    return _PyThreadState_UncheckedGet();
}

static inline frame *frame_running(PyThreadState *state)
{
    return state->cframe->current_frame;
}

static inline PyCodeObject *frame_code(frame *frame)
{
    return frame->f_code;
}

static inline const _Py_CODEUNIT *frame_place(const frame *frame)
{
    return frame->prev_instr;
}

static inline bool interpreter_ends(void)
{
    return _Py_IsFinalizing();
}
