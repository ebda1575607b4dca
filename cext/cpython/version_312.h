/* CPython 3.12: by sys.monitoring lines are told (cpython/version.h). */
#pragma once

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

static inline PyObject *frame_first_argument(frame *frame)
{
    return frame->localsplus[0];
}

static inline PyObject *frame_generator(frame *frame)
{
    return (PyObject *)_PyFrame_GetGenerator(frame);
}

static inline bool interpreter_ends(void)
{
    return _Py_IsFinalizing();
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
#define RETURNS(X) X(RETURN_VALUE) X(RETURN_CONST)
#define STORES_OF_VERSION(X) X(STORE_SLICE)
