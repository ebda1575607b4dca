/* How reaching a place is noticed: by sys.monitoring from 3.12 on (coverage_monitor.c), before that by a trace
   function or by probes in the bytecode (coverage_probes.c). */
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "coverage/covered_code.h"

/* Start the events; why not, or NULL. */
const char *coverage_events_begin(void);

/* Returns what was missed meanwhile, or NULL. */
const char *coverage_events_end(void);
