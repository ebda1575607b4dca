/* The shims' bodies, one for each signature: what a stub jumps to. */
#pragma once

#include "hooks/stubs.h"

/* A call is timed. */
extern void *const bodies[SIGNATURE_COUNT];

/* The same, but a free lock is passed through; NULL for signatures that no lock has. */
extern void *const takers[SIGNATURE_COUNT];

/* The same, with what a descendant needs in the environment that is passed on; NULL for those that start no program. */
extern void *const passers[SIGNATURE_COUNT];

/* The same, for `run` of a context: few contexts carry a transaction to another thread; NULL for other signatures. */
extern void *const runners[SIGNATURE_COUNT];

/* A Python function that may make a coroutine or an asynchronous generator, which then is what is timed. */
PyObject *time_awaited(struct slot *self, PyObject *function, PyObject *const *arguments, size_t flags, PyObject *names);

/* The same for a Python function of a package, which is behind a wrapper. */
PyObject *time_wrapped(PyObject *wrapper, PyObject *const *arguments, size_t flags, PyObject *names);
