/* The headers `traceparent` and `tracestate` of a request, in the shapes in which servers and workers hand headers on. */
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdbool.h>

#include "core/trace_context.h"
#include "hooks/call.h"

/* Read the header of the request that the call serves; false if it has none that is valid. */
bool read_context(const struct call *call, struct trace_context *context);

/* The trace state of a request that has a valid context, as it is passed on: bytes, a new reference. NULL if it has
   none, or if none is passed on. */
PyObject *read_state(const struct call *call);

/* Both, kept for a call in progress, with the spans that other tracers have active. */
void keep_context(const struct call *call, const struct span *serving);

int trace_headers_begin(void);
