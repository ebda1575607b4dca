/* The beginning of a call where the filter, sampling, a level or the dialogue wants to know of it. */
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "core/recorder.h"
#include "hooks/call.h"

/* Are calls of that number timed? */
bool is_timed(const struct slot *slot, uint32_t intrinsic);

/* A call that is not timed may still change what is known of descriptors. */
bool begin_untimed(struct call *call, struct thread *thread, uint32_t intrinsic);

/* Does what lies behind the number of a descriptor tell alone that the filter leaves the call out? */
bool is_left_out_behind(const struct slot *slot, PyObject *const *arguments, Py_ssize_t count);

/* What shim_begin does, where any of these is on. */
bool begin_checked(struct call *call, struct thread *thread, PyThreadState *state);
