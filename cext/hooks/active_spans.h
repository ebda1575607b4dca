/* The spans that OpenTelemetry and ddtrace, where the program has imported them, have active: each keeps its own in a
   context variable. Nothing is imported, and none of their code runs. */
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "core/threads.h"

int active_spans_begin(void);

/* The program has imported such a tracer. */
void expect_active_spans(void);

/* Those of the thread belong to its outermost transaction in progress, unless it has some. A current exception stays. */
void note_active_spans(struct thread *thread);
