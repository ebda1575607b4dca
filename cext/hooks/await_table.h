/* Awaited calls in progress, by what is awaited. */
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdbool.h>
#include <stdint.h>

#include "core/recorder.h"
#include "hooks/slot.h"

/* An awaited call in progress, or an asynchronous generator whose items are to be awaited. */
struct await {
    PyObject *awaited; /* no reference: it is forgotten before it dies. NULL in an unused place */
    const struct slot *slot;
    PyObject *owner; /* no reference, whose method it is: compared, never looked into */
    PyObject *told;    /* what tells by the end what it was; a reference, or NULL */
    PyObject *scope;   /* what servers and frameworks hand on of the request that it serves; a reference, or NULL */
    uint64_t bytes;    /* as far as the arguments tell */
    uint64_t start_ns, start_cpu_ns, running_ns, cpu_ns, inner_wall_ns, inner_cpu_ns;
    uint32_t call, parent, intrinsic, stack, detail, task, thread;
    bool is_inside_passed_over; /* in a task of its own */
};

uint32_t *those_of_scope(const PyObject *scope);

struct await *await_find(const PyObject *awaited);

struct await *await_add(PyObject *awaited);

/* What stands behind it in the same row is put where it is found. */
void await_forget(const PyObject *awaited);

/* Those of a parent are not the child's. */
void awaits_forget(void);

/* The call of a server, or framework, in progress on the thread that the same request is served by, in another task; the
   outermost where there are several. NULL where there is none. A server's own begins a request, and is inside of none. */
struct await *request_around(const struct await *await, const struct thread *thread);
