/* The beginning of a call where the filter, sampling, a level or the dialogue wants to know of it. */
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "core/recorder.h"
#include "hooks/call.h"

/* Are calls of that number timed? */
bool is_timed(const struct slot *slot, uint32_t intrinsic);

/* An untimed call may still change what is known about descriptors. */
bool begin_untimed(struct call *call, struct thread *thread, uint32_t intrinsic);

/* Whether the number of a descriptor alone shows that the filter excludes the call. */
bool is_left_out_behind(const struct slot *slot, PyObject *const *arguments, Py_ssize_t count);

/* What shim_begin does, where any of these is on. */
bool begin_checked(struct call *call, struct thread *thread, PyThreadState *state);
