/* What all versions with known frames have in common; their own headers have the positions of fields
   (cpython/version.h). */
#pragma once

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

#define UNSUPPORTED NULL

typedef struct _PyInterpreterFrame frame;

static inline bool frame_is_hidden(frame *frame)
{
    return _PyFrame_IsIncomplete(frame);
}

static inline frame *frame_previous(const frame *frame)
{
    return frame->previous;
}

static inline int frame_instruction(frame *frame)
{
    return _PyInterpreterFrame_LASTI(frame);
}

static inline PyObject *frame_globals(const frame *frame)
{
    return frame->f_globals;
}

static inline PyObject *frame_builtins(const frame *frame)
{
    return frame->f_builtins;
}

static inline bool frame_is_of_generator(const frame *frame)
{
    return frame->owner == FRAME_OWNED_BY_GENERATOR;
}

static inline PyObject *generator_name(const PyObject *generator)
{
    return ((const PyGenObject *)generator)->gi_name;
}

static inline bool coroutine_has_not_begun(const PyObject *coroutine)
{
    return ((const PyCoroObject *)coroutine)->cr_frame_state == FRAME_CREATED;
}

static inline bool coroutine_is_running(const PyObject *coroutine)
{
    return ((const PyCoroObject *)coroutine)->cr_frame_state == FRAME_EXECUTING;
}

#define coroutine_has_ended(coroutine) FRAME_STATE_FINISHED(((const PyCoroObject *)(coroutine))->cr_frame_state)
