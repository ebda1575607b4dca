/* CPython 3.11: line events come from a trace function (cpython/version.h). */
#pragma once

#include "cpython/version_until_312.h"

#define FRAME_STATE_FINISHED(state) ((state) >= FRAME_COMPLETED)

#define LOCK_OF(interpreter) (&(interpreter)->runtime->ceval.gil)

#define RUNNING_STATE_IS_OWN 0
#define VISITS_OBJECTS 0
#define HAS_PYTHONS_BUFFERS 0
#define FRAME_NO_CODE 256 /* no owner */
#define FRAME_ENTRY offsetof(frame, is_entry)
#define FUNCTIONS_ENTERED ENTERED_all

static inline void function_set_vectorcall(PyFunctionObject *function, vectorcallfunc to)
{
    function->vectorcall = to;
    function->func_version = 0;
}

static inline int value_of_digit(const PyObject *number)
{
    return Py_SIZE(number) == 1 ? (int)((const PyLongObject *)number)->ob_digit[0] : -1;
}

static inline bool frame_is_interpreters(const frame *frame)
{
    (void)frame;
    return false;
}

static inline bool code_is_immortal(PyCodeObject *code)
{
    (void)code;
    return false;
}

static inline uint32_t code_version(const PyCodeObject *code)
{
    (void)code;
    return 0;
}

static inline int extra_index(freefunc release)
{
    return (int)_PyEval_RequestCodeExtraIndex(release);
}

static inline int extra_get(PyCodeObject *code, int index, void **extra)
{
    return _PyCode_GetExtra((PyObject *)code, index, extra);
}

static inline int extra_set(PyCodeObject *code, int index, void *extra)
{
    return _PyCode_SetExtra((PyObject *)code, index, extra);
}

#define CONDITIONAL_JUMPS_BACK(X) \
    X(POP_JUMP_BACKWARD_IF_TRUE) X(POP_JUMP_BACKWARD_IF_FALSE) \
    X(POP_JUMP_BACKWARD_IF_NONE) X(POP_JUMP_BACKWARD_IF_NOT_NONE)
#define CONDITIONAL_JUMPS(X) \
    X(POP_JUMP_FORWARD_IF_TRUE) X(POP_JUMP_FORWARD_IF_FALSE) \
    X(POP_JUMP_FORWARD_IF_NONE) X(POP_JUMP_FORWARD_IF_NOT_NONE) \
    X(JUMP_IF_TRUE_OR_POP) X(JUMP_IF_FALSE_OR_POP)
#define RETURNS(X) X(RETURN_VALUE)
#define ENDS_OF_VERSION(X)
