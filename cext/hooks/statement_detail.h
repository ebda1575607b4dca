/* The statement of a call: SQL without its literals, as a number in strings. What was seen before is found in a cache. */
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>

uint32_t statement_detail(PyObject *statement);

/* The statement that a cursor of PostgreSQL ran last, as it was sent: what was made of an object that is no text. */
uint32_t kept_statement(PyObject *cursor);
