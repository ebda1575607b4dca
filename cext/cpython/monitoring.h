/* sys.monitoring from C (3.12 on): a tool's number, its callbacks, and which events are told of which code. */
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdbool.h>

#include "core/visible.h"

/* An event by its name, and what is called at it; a list of them ends with one without a name. */
struct monitored {
    const char *event;
    vectorcallfunc call;
};

struct monitor_tool {
    int numbers[2]; /* the first that is free is taken */
    const struct monitored *events;
    int number; /* which it has */
};

VISIBLE extern PyObject *monitoring_disable; /* sys.monitoring.DISABLE */

/* What a callback gives that is not to be called again for this place. */
static inline PyObject *not_again(void)
{
    return Py_NewRef(monitoring_disable);
}

/* Become a tool, with callbacks; no event is asked for yet. Why not, or NULL. */
VISIBLE const char *monitoring_begin(struct monitor_tool *tool);

/* Be a tool no longer. */
VISIBLE void monitoring_end(const struct monitor_tool *tool);

/* The number of an event by its name; 0 where there is none. */
VISIBLE int event_number(const char *name);

/* The events by which a jump that may not be taken is told (BRANCH_EVENTS, cpython/version.h). */
VISIBLE int branch_event_numbers(void);

/* From now on these events are told of the code object, or of all code. */
VISIBLE bool monitor_code(const struct monitor_tool *tool, PyCodeObject *code, int events);
VISIBLE bool monitor_all(const struct monitor_tool *tool, int events);
