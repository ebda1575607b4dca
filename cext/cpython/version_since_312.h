/* What CPython 3.12 and all later versions have alike (cpython/version.h). */
#pragma once

#define LOCK_OF(interpreter) ((interpreter)->ceval.gil)

static inline void function_set_vectorcall(PyFunctionObject *function, vectorcallfunc to)
{
    PyFunction_SetVectorcall(function, to);
}

static inline bool code_is_immortal(PyCodeObject *code)
{
    return _Py_IsImmortal((PyObject *)code);
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
