/* The frames of the running interpreter, without making frame objects: where CPython's versions differ. */
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdbool.h>

#if PY_VERSION_HEX < 0x030b0000 || PY_VERSION_HEX >= 0x030f0000
#error "interpose knows the frames of CPython 3.11, 3.12, 3.13 and 3.14"
#endif

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wpragmas"
#pragma GCC diagnostic ignored "-Wmissing-field-initializers"
#pragma GCC diagnostic ignored "-Wunused-parameter"
#pragma GCC diagnostic ignored "-Wsign-compare"
#define Py_BUILD_CORE 1
#include <internal/pycore_code.h>
#include <internal/pycore_frame.h>
#if PY_VERSION_HEX >= 0x030e0000
#include <internal/pycore_genobject.h>
#include <internal/pycore_instruments.h>
#include <internal/pycore_interpframe.h>
#endif
#undef Py_BUILD_CORE
#pragma GCC diagnostic pop

typedef struct _PyInterpreterFrame frame;

/* Not begun yet, or no Python code at all. */
static inline int frame_is_hidden(frame *frame)
{
    return _PyFrame_IsIncomplete(frame);
}

static inline frame *frame_visible(frame *frame)
{
    while (frame && frame_is_hidden(frame))
        frame = frame->previous;
    return frame;
}

/* The calling thread's state, or NULL. */
static inline PyThreadState *running_state(void)
{
#if PY_VERSION_HEX >= 0x030d0000
    return PyThreadState_GetUnchecked();
#else
    return _PyThreadState_UncheckedGet();
#endif
}

/* The frame that runs, where it is known to be Python code. */
static inline frame *frame_running(PyThreadState *state)
{
#if PY_VERSION_HEX >= 0x030d0000
    return state->current_frame;
#else
    return state->cframe->current_frame;
#endif
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

static inline PyCodeObject *frame_code(frame *frame)
{
#if PY_VERSION_HEX >= 0x030e0000
    return _PyFrame_GetCode(frame);
#elif PY_VERSION_HEX >= 0x030d0000
    return (PyCodeObject *)frame->f_executable;
#else
    return frame->f_code;
#endif
}

/* Index of the instruction being executed, in code units. */
static inline int frame_instruction(frame *frame)
{
    return _PyInterpreterFrame_LASTI(frame);
}

/* The same, where it lies. */
static inline const _Py_CODEUNIT *frame_place(const frame *frame)
{
#if PY_VERSION_HEX >= 0x030d0000
    return frame->instr_ptr;
#else
    return frame->prev_instr;
#endif
}

/* Is the interpreter being taken down? Modules may be gone then. */
static inline bool interpreter_ends(void)
{
#if PY_VERSION_HEX >= 0x030d0000
    return Py_IsFinalizing();
#else
    return _Py_IsFinalizing();
#endif
}

/* The first of its function's arguments, which must have one. Borrowed. */
static inline PyObject *frame_first_argument(frame *frame)
{
#if PY_VERSION_HEX >= 0x030e0000
    return PyStackRef_AsPyObjectBorrow(frame->localsplus[0]);
#else
    return frame->localsplus[0];
#endif
}

/* The generator or coroutine whose frame it is. */
static inline PyObject *frame_generator(frame *frame)
{
#if PY_VERSION_HEX >= 0x030e0000
    return (PyObject *)_PyGen_GetGeneratorFromFrame(frame);
#else
    return (PyObject *)_PyFrame_GetGenerator(frame);
#endif
}
