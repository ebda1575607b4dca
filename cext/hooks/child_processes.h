/* What a call tells of processes: that one was started, with which program, or could not be; that one ended. */
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "hooks/call.h"

/* The process becomes the program at `path`, or at the call's own if that is NULL. */
void becomes(struct call *call, const char *path);

void starts_shell(struct call *call);

void forked(const struct call *call, PyObject *result);

void spawned(const struct call *call, PyObject *result);

void shell_ended(const struct call *call, PyObject *result);

/* Nothing was started, or nothing that could be. */
void start_failed(const struct call *call);

void waited(PyObject *result);

/* The result's fields: pid, uid, signal, status, code. */
void waited_by_id(PyObject *result);
