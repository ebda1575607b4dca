/* CPython 3.14: as 3.13, with tagged references; neither lines nor coverage are recorded (cpython/version.h). */
#pragma once

static inline PyThreadState *running_state(void)
{
    return PyThreadState_GetUnchecked();
}

static inline frame *frame_running(PyThreadState *state)
{
    return state->current_frame;
}

static inline PyCodeObject *frame_code(frame *frame)
{
    return _PyFrame_GetCode(frame);
}

static inline const _Py_CODEUNIT *frame_place(const frame *frame)
{
    return frame->instr_ptr;
}

static inline PyObject *frame_first_argument(frame *frame)
{
    return PyStackRef_AsPyObjectBorrow(frame->localsplus[0]);
}

static inline PyObject *frame_generator(frame *frame)
{
    return (PyObject *)_PyGen_GetGeneratorFromFrame(frame);
}

static inline bool interpreter_ends(void)
{
    return Py_IsFinalizing();
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
#define RETURNS(X) X(RETURN_VALUE)
#define STORES_OF_VERSION(X) X(STORE_SLICE) X(STORE_FAST_STORE_FAST) X(STORE_FAST_LOAD_FAST)
