/* What CPython 3.11 to 3.13 have alike, and none later (cpython/version.h). */
#pragma once

static inline PyObject *frame_first_argument(frame *frame)
{
    return frame->localsplus[0];
}

static inline PyObject *frame_generator(frame *frame)
{
    return (PyObject *)_PyFrame_GetGenerator(frame);
}

#define BRANCH_EVENTS(X) X("BRANCH")
#define BEHIND_JUMPS(X)
#define LOOP_ENDS(X)
