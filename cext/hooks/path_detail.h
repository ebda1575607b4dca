/* The path of a call, or what its descriptor refers to, as a number in strings. */
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>

#include "kinds.h"
#include "hooks/descriptors.h"

/* A path in text or bytes, as the file system has it; 0 for anything else. `kind`: of a file, or of a socket. */
uint32_t path_text(PyObject *path, enum kind kind);

static inline uint32_t detail_of_descriptor(int number)
{
    const struct descriptor *known = descriptor_known(number);
    return known ? __atomic_load_n(&known->name, __ATOMIC_RELAXED) : 0;
}

uint32_t descriptor_detail(PyObject *object);

uint32_t path_detail(PyObject *path);

/* The text that a pathlib.Path caches once it was asked for, which the call itself does. */
uint32_t kept_path(PyObject *path);
