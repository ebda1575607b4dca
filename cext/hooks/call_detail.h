/* What is kept of a call besides its times: a statement, a path, an address, a command. Never a value. */
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdbool.h>
#include <stdint.h>

#include "hooks/call.h"
#include "hooks/slot.h"

/* What names it better than what was known when it began; 0 where nothing does. */
uint32_t detail_of_route(const struct slot *slot, PyObject *subject);

bool has_route(const struct slot *slot);

uint32_t detail_of(const struct call *call);

/* May what is kept of its calls be known only after the call? */
bool is_detail_late(const struct slot *slot);

/* What is known of it only after the call, which gives or keeps it; NULL: it failed. */
uint32_t late_detail(const struct call *call, PyObject *result);
