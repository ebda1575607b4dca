/* The frames of the running interpreter, without making frame objects. */
#pragma once

#include "cpython/version.h"

/* Not begun yet, or no Python code at all. */
static inline bool frame_is_hidden(frame *frame)
{
    return _PyFrame_IsIncomplete(frame);
}

static inline frame *frame_visible(frame *frame)
{
    while (frame && frame_is_hidden(frame))
        frame = frame->previous;
    return frame;
}

/* The innermost frame of a thread, or NULL. */
static inline frame *frame_innermost(PyThreadState *state)
{
    return frame_visible(frame_running(state));
}

static inline frame *frame_outer(frame *frame)
{
    return frame_visible(frame->previous);
}

/* Index of the instruction being executed, in code units. */
static inline int frame_instruction(frame *frame)
{
    return _PyInterpreterFrame_LASTI(frame);
}
