/* Statement coverage on 3.11 by a trace function in C: places are told by lines, and by instructions in code that has several in a
   line, or whose branches are wanted. */
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "coverage/covered_code.h"

/* Have the events told; why not, or NULL. */
const char *coverage_trace_begin(void);

/* Gives what was missed meanwhile, or NULL. */
const char *coverage_trace_end(void);

/* What has places without probes is told by the trace function from now on, and so is all else that runs. */
void coverage_trace_the_rest(void);
bool coverage_is_rest_traced(void);
