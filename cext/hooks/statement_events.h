/* Lines as events: each that line trace comes to is one where statements are asked for, an instant that takes no time, so that
   nothing is added to any time of a report. The line stands by itself, whosever code it is: what is chosen is traced for its
   lines. What it takes to tell of one is timed by line trace (lines/line_events.h). */
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>

#include "core/recorder.h"
#include "hooks/slot.h"

/* From now on lines are told as calls of that slot; NULL: no more. */
void tell_lines_as(const struct slot *slot);

/* The mean of so many, in nanoseconds, of the line that runs: for calibration. */
uint64_t time_told_lines(struct thread *thread, unsigned times);
