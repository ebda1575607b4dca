/* URLs, without user, password, query and fragment, as numbers in strings. */
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>

#include "kinds.h"
#include "hooks/object_texts.h"

struct text {
    char bytes[TEXT_BYTES];
    size_t length;
};

/* How much of it comes before one of these. */
size_t length_until(const char *bytes, size_t length, const char *ends);

void append(struct text *text, const char *bytes, size_t length);

/* A method, if any, and a URL: a text, or an object that keeps its parts. */
uint32_t url_detail(enum kind kind, PyObject *method, PyObject *url);
