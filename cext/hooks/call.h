/* A call that a shim times, and its arguments. */
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdbool.h>
#include <stdint.h>

#include "core/recorder.h"
#include "core/visible.h"
#include "cpython/side_lock.h"
#include "hooks/descriptors.h"
#include "hooks/slot.h"

/* A call that a shim times: the span, and the arguments, however they were passed. */
struct call {
    struct span span;
    const struct slot *slot;
    PyObject *owner;
    PyObject *const *arguments;
    Py_ssize_t count;
    PyObject *names; /* the names of the arguments behind `count`, a dictionary of them, or NULL */
    int descriptor; /* its descriptor, or -1 */
    const struct descriptor *known; /* for traffic: the descriptor's data, or NULL */
    uint8_t terminal; /* with a recorded dialogue: the terminal's state (hooks/terminal.h); else 0 */
#if IS_FREE_THREADED
    struct descriptor seen; /* what `known` points to */
#endif
    struct child *child; /* if it is recorded before it is attempted: its record, or NULL */
    struct call *around; /* if it starts a program: the outer call of this kind, in which or in whose child it is made, or NULL */
};

#if IS_FREE_THREADED
/* The same as it is now, a copy: other threads may change it. */
static inline const struct descriptor *descriptor_seen(int number, struct descriptor *copy)
{
    const struct descriptor *known = descriptor_known(number);
    if (!known)
        return NULL;
    *(descriptor_word *)copy = __atomic_load_n((const descriptor_word *)known, __ATOMIC_ACQUIRE);
    return copy;
}
#endif

/* How arguments are passed: to a METH_NOARGS, METH_O or METH_VARARGS function, or to a Python function that is a
   method. */
enum shape { SHAPE_NOTHING, SHAPE_ONE, SHAPE_TUPLE, SHAPE_METHOD };

static inline PyObject *const *items_of(PyObject *arguments)
{
    return arguments && PyTuple_Check(arguments) ? ((PyTupleObject *)arguments)->ob_item : NULL;
}

static inline PyObject *first_of(PyObject *arguments)
{
    return arguments && PyTuple_Check(arguments) && PyTuple_GET_SIZE(arguments) ? PyTuple_GET_ITEM(arguments, 0) : NULL;
}

static inline Py_ssize_t count_of(PyObject *arguments)
{
    return arguments && PyTuple_Check(arguments) ? PyTuple_GET_SIZE(arguments) : 0;
}

static inline PyObject *argument_of(const struct call *call, Py_ssize_t number)
{
    return number < call->count ? call->arguments[number] : NULL;
}

/* An argument that was given by a name, which is interned; NULL if it was not. */
PyObject *argument_called(const struct call *call, PyObject *keyword);

/* What the detail is of; NULL if it was not given. */
static inline PyObject *subject_of(const struct call *call)
{
    if (call->slot->subject == SUBJECT_OWNER)
        return call->owner;
    if (LIKELY(call->slot->subject < call->count))
        return call->arguments[call->slot->subject];
    return call->slot->keyword ? argument_called(call, call->slot->keyword) : NULL;
}

/* Its descriptor: the object's own, or that of an argument. */
int descriptor_of_call(const struct call *call);

/* The data of its descriptor is known from here on. */
static inline void look_behind(struct call *call)
{
#if IS_FREE_THREADED
    call->known = descriptor_seen(call->descriptor, &call->seen);
#else
    call->known = descriptor_known(call->descriptor);
#endif
}

/* `input`: where both streams are the process's own terminal, C reads and writes there itself. */
static inline bool is_input(const struct slot *slot)
{
    return slot->asks && !slot->traffic && slot->moves == MOVES_result;
}

/* Whether the dialogue of its calls is kept, recorded or not. */
static inline bool keeps_dialogue(const struct slot *slot)
{
    return UNLIKELY(recorder.dialogue) &&
           (slot->traffic ? slot->moves == MOVES_result : slot->moves == MOVES_frame || is_input(slot));
}
