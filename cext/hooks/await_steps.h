/* The steps of an awaited call. Each is in the table of calls in progress like a call, under the number of the
   whole. The time of suspension is added to that of inner calls: self time is what its own steps took on the thread. */
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdbool.h>

#include "hooks/await_event.h"

void step_begin(struct step *step, PyObject *awaited);

/* Another one of the same thread may have grown the table meanwhile: it is looked for again. */
void step_end(struct step *step, bool ended, bool failed);
