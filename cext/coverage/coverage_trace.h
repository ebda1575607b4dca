/* Statement coverage on 3.11 by a trace function in C: by line events, and by instruction events in code with
   several places on a line, or with requested branches. */
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "coverage/covered_code.h"

/* Start the events; why not, or NULL. */
const char *coverage_trace_begin(void);

/* Returns what was missed meanwhile, or NULL. */
const char *coverage_trace_end(void);

/* From now on the trace function covers places without probes, and all other code that runs. */
void coverage_trace_the_rest(void);
bool coverage_is_rest_traced(void);
