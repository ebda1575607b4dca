/* What a call changes in the known descriptors and children. */
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>

#include "hooks/call.h"

/* Before the call: once it is closed, its number may be another thread's. */
void change_before(struct call *call);

void change_after(const struct call *call, PyObject *result, uint64_t bytes);
