/* The frames of the running interpreter, without making frame objects. */
#pragma once

#include "cpython/version.h"

static inline frame *frame_visible(frame *frame)
{
    while (frame && frame_is_hidden(frame))
        frame = frame_previous(frame);
    return frame;
}

/* The innermost frame of a thread, or NULL. */
static inline frame *frame_innermost(PyThreadState *state)
{
    return frame_visible(frame_running(state));
}

static inline frame *frame_outer(frame *frame)
{
    return frame_visible(frame_previous(frame));
}

/* The address of a code object's instructions. */
static inline const _Py_CODEUNIT *code_begin(const PyCodeObject *code)
{
    return (const _Py_CODEUNIT *)(const void *)code->co_code_adaptive;
}
