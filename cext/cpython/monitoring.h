/* sys.monitoring from C (3.12 on): a tool's number, its callbacks, and which events it gets for which code. */
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdbool.h>

#include "core/visible.h"

/* An event by name, and its callback; a list ends with an entry without a name. */
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

/* Become a tool, with callbacks but no events yet. Why not, or NULL. */
VISIBLE const char *monitoring_begin(struct monitor_tool *tool);

/* Be a tool no longer. */
VISIBLE void monitoring_end(const struct monitor_tool *tool);

/* The number of an event by its name; 0 if there is none. */
VISIBLE int event_number(const char *name);

/* The events for conditional jumps (BRANCH_EVENTS, cpython/version.h). */
VISIBLE int branch_event_numbers(void);

/* From now on get these events for the code object, or for all code. */
VISIBLE bool monitor_code(const struct monitor_tool *tool, PyCodeObject *code, int events);
VISIBLE bool monitor_all(const struct monitor_tool *tool, int events);
