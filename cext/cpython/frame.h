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

static inline int code_extra_index(freefunc release)
{
#if PY_VERSION_HEX >= 0x030c0000
    return (int)PyUnstable_Eval_RequestCodeExtraIndex(release);
#else
    return (int)_PyEval_RequestCodeExtraIndex(release);
#endif
}

/* How a code object keeps its extra data in all versions; whether it does is asked at the first use. */
struct code_extras {
    Py_ssize_t size;
    void *extras[];
};

static bool extras_lie_as_known;

static inline void *code_extra_direct(const PyCodeObject *code, int index)
{
    const struct code_extras *known = code->co_extra;
    return known && index < known->size ? known->extras[index] : NULL;
}

static inline void *code_extra(PyCodeObject *code, int index)
{
    void *extra = NULL;
    if (__builtin_expect(extras_lie_as_known, 1))
        return code_extra_direct(code, index);
#if PY_VERSION_HEX >= 0x030c0000
    PyUnstable_Code_GetExtra((PyObject *)code, index, &extra);
#else
    _PyCode_GetExtra((PyObject *)code, index, &extra);
#endif
    return extra;
}

/* What others keep with code objects is let go of by their functions, which CPython calls where they keep nothing as well, as soon
   as there is room for it. So there is room for ours alone, unless they made some before. */
static inline void code_extra_fit(PyCodeObject *code, Py_ssize_t size_before, int index)
{
    struct code_extras *extras = (struct code_extras *)code->co_extra;
    extras->size = size_before > index ? size_before : index + 1;
}

static inline int code_extra_set(PyCodeObject *code, int index, void *value)
{
    const struct code_extras *before = (const struct code_extras *)code->co_extra;
    Py_ssize_t size_before = before && extras_lie_as_known ? before->size : 0;
    bool fits = !before || extras_lie_as_known;
#if PY_VERSION_HEX >= 0x030c0000
    int failed = PyUnstable_Code_SetExtra((PyObject *)code, index, value);
#else
    int failed = _PyCode_SetExtra((PyObject *)code, index, value);
#endif
    if (failed)
        return failed;
    extras_lie_as_known = code_extra_direct(code, index) == value;
    if (fits && extras_lie_as_known)
        code_extra_fit(code, size_before, index);
    return 0;
}
