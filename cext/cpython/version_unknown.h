/* A version of CPython that came after this was written: by its public functions alone. What asks for more is left out, and said
   to be (cpython/version.h). */
#pragma once

#include "cpython/public_since_314.h"
#include "cpython/version_since_312.h"

#define SMALL_NUMBERS 256

#define TEXT_OF(number) #number
#define VERSION_TEXT(major, minor) TEXT_OF(major) "." TEXT_OF(minor)
#define UNSUPPORTED "CPython " VERSION_TEXT(PY_MAJOR_VERSION, PY_MINOR_VERSION) " is not supported yet: calls of C functions only"

#define HAS_ENTRY_REFERENCES 1
#define SPAWN_TAKES_NONE 1

typedef PyFrameObject frame; /* borrowed of the frames that run */
typedef uint16_t _Py_CODEUNIT;

static inline PyThreadState *running_state(void)
{
    return PyThreadState_GetUnchecked();
}

static inline frame *frame_running(PyThreadState *state)
{
    frame *running = PyThreadState_GetFrame(state);
    Py_XDECREF(running);
    return running;
}

static inline frame *frame_previous(frame *inner)
{
    frame *outer = PyFrame_GetBack(inner);
    Py_XDECREF(outer);
    return outer;
}

static inline PyCodeObject *frame_code(frame *frame)
{
    PyCodeObject *code = PyFrame_GetCode(frame);
    Py_DECREF(code);
    return code;
}

static inline int frame_instruction(frame *frame)
{
    int offset = PyFrame_GetLasti(frame);
    return offset < 0 ? 0 : offset / (int)sizeof(_Py_CODEUNIT);
}

static inline const _Py_CODEUNIT *frame_place(frame *frame)
{
    return (const _Py_CODEUNIT *)(const void *)frame_code(frame)->co_code_adaptive + frame_instruction(frame);
}

static inline PyObject *frame_globals(frame *frame)
{
    PyObject *globals = PyFrame_GetGlobals(frame);
    Py_DECREF(globals);
    return globals;
}

static inline PyObject *frame_builtins(frame *frame)
{
    PyObject *builtins = PyFrame_GetBuiltins(frame);
    Py_DECREF(builtins);
    return builtins;
}

static inline bool interpreter_ends(void)
{
    return Py_IsFinalizing();
}

/* The types behind these are not public. */

static inline bool frame_is_hidden(const frame *frame)
{
    (void)frame;
    return false;
}

static inline bool frame_is_interpreters(const frame *frame)
{
    (void)frame;
    return false;
}

static inline bool frame_is_of_generator(const frame *frame)
{
    (void)frame;
    return false;
}

static inline PyObject *frame_value(const frame *frame, uint32_t index)
{
    (void)frame, (void)index;
    return NULL;
}

static inline PyObject *frame_generator(const frame *frame)
{
    (void)frame;
    return NULL;
}

static inline PyObject *generator_name(const PyObject *generator)
{
    (void)generator;
    return NULL;
}

static inline bool coroutine_has_not_begun(const PyObject *coroutine)
{
    (void)coroutine;
    return false;
}

static inline bool coroutine_is_running(const PyObject *coroutine)
{
    (void)coroutine;
    return false;
}

static inline bool coroutine_has_ended(const PyObject *coroutine)
{
    (void)coroutine;
    return true;
}

#define RETURNS(X)
#define ENDS_OF_VERSION(X)
#define BEHIND_JUMPS(X)
#define GENERATOR_USES(X)
#define LOOP_ENDS(X)
#define BRANCH_EVENTS(X) X("BRANCH_LEFT") X("BRANCH_RIGHT")
