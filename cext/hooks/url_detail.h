/* URLs, without user, password, query and fragment, as numbers in strings. */
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>

#include "kinds.h"
#include "core/url.h"

/* Put a request's method and a space, if there is one. */
void append_method(struct text *text, PyObject *method);

/* A method, if any, and a URL: a text, or an object that keeps its parts. */
uint32_t url_detail(enum kind kind, PyObject *method, PyObject *url);
