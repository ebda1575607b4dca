/* The detail of a call: a statement, a path, an address, a command. Never a value. */
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdbool.h>
#include <stdint.h>

#include "hooks/call.h"
#include "hooks/slot.h"

/* A better name than the one known when it began; 0 if there is none. */
uint32_t detail_of_route(const struct slot *slot, PyObject *subject);

uint32_t detail_of(const struct call *call);

/* Whether the detail of its calls may be known only after the call. */
bool is_detail_late(const struct slot *slot);

/* A detail that is known only after the call, from its result or its effect; NULL: it failed. */
uint32_t late_detail(const struct call *call, PyObject *result);
