/* The database of a connection: its host and its name, and nothing else that was given for it, because that may be a
   password. */
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdbool.h>
#include <stdint.h>

enum { PART_BYTES = 256 };

struct server {
    char host[PART_BYTES], name[PART_BYTES];
};

bool is_one_of(const char *word, size_t bytes, const char *words);

/* Of a connection string, and of arguments by name, which go before it. */
uint32_t dsn_detail(PyObject *dsn, PyObject *names, PyObject *const *values);

/* Of a host and a name, and of arguments by name. */
uint32_t server_detail(PyObject *host, PyObject *name, PyObject *names, PyObject *const *values);
