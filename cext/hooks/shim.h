/* What shims do at calls that are not merely timed: where the filter, sampling, a level or the dialogue wants to know of
   them, or they took long. */
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdbool.h>
#include <stdint.h>

#include "core/recorder.h"
#include "hooks/call.h"
#include "hooks/slot.h"

void shims_begin(void);

/* A call that is not timed may still change what is known of descriptors. */
bool begin_untimed(struct call *call, struct thread *thread, uint32_t intrinsic);

/* Does what lies behind the number of a descriptor tell alone that the filter leaves the call out? */
bool is_left_out_behind(const struct slot *slot, PyObject *const *arguments, Py_ssize_t count);

/* How a `__next__` in Python says that there are no more. */
bool is_end_of_rows(void);

/* Was it no wait, or a fetch that was added to another's event? */
bool is_no_event(const struct call *call, uint64_t bytes, bool failed);

/* A call took long enough to look at it more closely. What waits for work may take as long as it likes. */
void look_at_long_call(struct span *span);

/* A result as it was given, an exception as it is set. */
PyObject *given(PyObject *result);

/* What calibration calls instead of an intrinsic. */
PyObject *do_nothing(PyObject *self, PyObject *argument);
