/* What shims do at the end of calls that are not merely recorded; and what they need before the first. */
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "core/recorder.h"
#include "hooks/call.h"

/* Have the recorder say what shims need to know of. */
void shims_begin(void);

/* An untimed call may have changed what is known about descriptors, or have served a request. */
void end_untimed(struct call *call, PyObject *result, bool failed);

/* A `__next__` in Python raises at the end: that is not an error. */
bool is_end_of_rows(const struct call *call);

/* Was it no wait, or a fetch that was added to another's event? */
bool is_no_event(const struct call *call, uint64_t bytes, bool failed);

/* A call took long enough to look at it more closely. What waits for work may take as long as it likes. */
void look_at_long_call(struct span *span);

/* A result as it was given, an exception as it is set. */
PyObject *given(PyObject *result);

/* What calibration calls instead of an intrinsic. */
PyObject *do_nothing(PyObject *self, PyObject *argument);
