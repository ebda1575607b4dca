/* The address of a call: host and port, or a path, as a number in strings. */
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>

uint32_t host_detail(PyObject *host, PyObject *port);

uint32_t address_detail(PyObject *address);

/* The socket under an encrypted connection. */
int descriptor_of_tls(PyObject *connection);
