/* Whether who waits for a descriptor waits for new work, or for the answer to something. */
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdbool.h>
#include <stdint.h>

#include "kinds.h"
#include "hooks/descriptors.h"

extern uint32_t answers;    /* given on servers' connections */

/* Does a wait on this descriptor end with new work, rather than with the answer to something? */
bool is_idle(struct descriptor known);

/* A number for an object that waits for registered descriptors; never 0. */
uint32_t watcher_of(const PyObject *object);

void watch(struct descriptor *known, uint32_t watcher);

void unwatch(struct descriptor *known, uint32_t watcher);

/* The watcher is gone, or a new one has taken its place. */
void unwatch_all(const PyObject *object);

enum kind kind_of_watched(const PyObject *object);

enum kind kind_of_selected(PyObject *const *lists, Py_ssize_t count);
