/* CPython 3.12: line events come from sys.monitoring (cpython/version.h). */
#pragma once

#include "cpython/version_since_312.h"
#include "cpython/version_until_312.h"

#define FRAME_NO_CODE FRAME_OWNED_BY_CSTACK
#define FUNCTIONS_ENTERED ENTERED_none

static inline bool frame_is_interpreters(const frame *frame)
{
    return frame->owner == FRAME_OWNED_BY_CSTACK;
}

#define RETURNS(X) X(RETURN_VALUE) X(RETURN_CONST)
#define ENDS_OF_VERSION(X) X(STORE_SLICE)
