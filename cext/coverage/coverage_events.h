/* How a place is seen to be come to: by sys.monitoring from 3.12 on (coverage_monitor.c), before by a trace function or by probes
   in the bytecode (coverage_probes.c). */
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "coverage/covered_code.h"

/* Have the events told; why not, or NULL. */
const char *coverage_events_begin(void);

/* Gives what was missed meanwhile, or NULL. */
const char *coverage_events_end(void);
