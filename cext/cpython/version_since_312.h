/* What CPython 3.12 and all later versions have alike (cpython/version.h). */
#pragma once

#define RUNNING_STATE_IS_OWN 1
#define VISITS_OBJECTS 1
#define FRAME_ENTRY 0
#define HAS_PYTHONS_BUFFERS 1

#define LOCK_OF(interpreter) ((interpreter)->ceval.gil)

static inline void function_set_vectorcall(PyFunctionObject *function, vectorcallfunc to)
{
    PyFunction_SetVectorcall(function, to);
}

static inline int value_of_digit(const PyObject *number)
{
    const PyLongObject *digits = (const PyLongObject *)number;
    return PyUnstable_Long_IsCompact(digits) ? (int)PyUnstable_Long_CompactValue(digits) : -1;
}

static inline bool code_is_immortal(PyCodeObject *code)
{
    return _Py_IsImmortal((PyObject *)code);
}

static inline uint32_t code_version(const PyCodeObject *code)
{
    return code->co_version;
}

static inline int extra_index(freefunc release)
{
    return (int)PyUnstable_Eval_RequestCodeExtraIndex(release);
}

static inline int extra_get(PyCodeObject *code, int index, void **extra)
{
    return PyUnstable_Code_GetExtra((PyObject *)code, index, extra);
}

static inline int extra_set(PyCodeObject *code, int index, void *extra)
{
    return PyUnstable_Code_SetExtra((PyObject *)code, index, extra);
}

#define CONDITIONAL_JUMPS_BACK(X)
#define CONDITIONAL_JUMPS(X) X(POP_JUMP_IF_TRUE) X(POP_JUMP_IF_FALSE) X(POP_JUMP_IF_NONE) X(POP_JUMP_IF_NOT_NONE)
