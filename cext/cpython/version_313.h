/* CPython 3.13: as 3.12, with other frames (cpython/version.h). */
#pragma once

#include "cpython/version_since_313.h"
#include "cpython/version_until_313.h"

#define FRAME_NO_CODE FRAME_OWNED_BY_CSTACK
#define FUNCTIONS_ENTERED ENTERED_initialisers

static inline PyCodeObject *frame_code(frame *frame)
{
    return (PyCodeObject *)frame->f_executable;
}

static inline bool frame_is_interpreters(const frame *frame)
{
    return frame->owner == FRAME_OWNED_BY_CSTACK;
}

#define ENDS_OF_VERSION(X) STORES_SINCE_313(X)
#define RETURNS(X) X(RETURN_VALUE) X(RETURN_CONST)
