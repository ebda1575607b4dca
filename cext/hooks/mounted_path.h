/* Where an application is mounted: what the names of its routes do not say. */
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "core/url.h"

/* The path that mounts took off a request, as text: SCRIPT_NAME of WSGI; of ASGI root_path without the server's own. A new
   reference, or NULL if there is none. */
PyObject *mounted_path(PyObject *told);

/* The mounted path of an ASGI scope, with `{name}` for each part that is the value of one parameter. A parameter of the
   route's own pattern (NULL if there is none) is not one of the mounts. */
void append_mounts(struct text *text, PyObject *told, PyObject *mount, const char *pattern);
