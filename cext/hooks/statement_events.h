/* Lines as events: if requested, each line that line trace reaches is an instant without duration, so no time in a
   report changes. The line stands for itself, whoever owns the code: functions are chosen for their lines. Line trace
   measures the cost of such an event (lines/line_events.h). */
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>

#include "core/recorder.h"
#include "hooks/slot.h"

/* From now on lines are recorded as calls of that slot; NULL: no longer. */
void tell_lines_as(const struct slot *slot);

/* The mean of this many, in nanoseconds, for the running line: for calibration. */
uint64_t time_told_lines(struct thread *thread, unsigned times);
