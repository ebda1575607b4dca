/* What a call changes in the known descriptors and children. */
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>

#include "hooks/call.h"

/* Of the connection that is among the attributes of the call's object; -1 if there is none. */
int descriptor_at_attribute(const struct call *call);

/* Before the call: once it is closed, its number may be another thread's. */
void change_before(struct call *call);

void change_after(const struct call *call, PyObject *result, uint64_t bytes);
