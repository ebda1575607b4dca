/* Awaited calls in progress, by the awaited object. */
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdbool.h>
#include <stdint.h>

#include "kinds.h"
#include "core/recorder.h"
#include "core/trace_context.h"
#include "hooks/answers.h"
#include "hooks/slot.h"

/* An awaited call in progress, or an asynchronous generator with items to be awaited. */
struct await {
    PyObject *awaited; /* no reference: it is forgotten before it dies. NULL in an unused place */
    const struct slot *slot;
    PyObject *owner; /* no reference, the object of its method: compared, never dereferenced */
    PyObject *told;    /* what identifies it at the end; a reference, or NULL */
    PyObject *scope;   /* what servers and frameworks hand on of the request that it serves; a reference, or NULL */
    uint64_t bytes;    /* as far as the arguments show */
    uint64_t start_ns, start_cpu_ns, running_ns, cpu_ns, inner_wall_ns, inner_cpu_ns;
    uint32_t call, parent, intrinsic, stack, detail, task, thread;
    uint32_t greenlet; /* that made it, or 0 */
    bool is_inside_passed_over; /* in a task of its own */
    bool has_name; /* it is not sampled, and took the name of a transaction inside */
    bool has_context;
    bool has_waited; /* a step has ended that did more than give way */
    struct answer answer; /* that it awaits */
    struct trace_context context; /* that the request came with */
    PyObject *state;              /* and its trace state; a reference to bytes, or NULL */
};

uint32_t *those_of_scope(const PyObject *scope);

struct await *await_find(const PyObject *awaited);

struct await *await_add(PyObject *awaited);

/* Entries after it in the same chain move up. */
void await_forget(const PyObject *awaited);

/* Those of a parent are not the child's. */
void awaits_forget(void);

/* The call of a server or framework, in progress on the thread, that serves the same request in another task; the
   outermost if there are several. NULL if there is none. A server's own call begins a request, and is inside none. */
struct await *request_around(const struct await *await, const struct thread *thread);

/* The request in progress with that number of a call, if its route is known by its end alone; or NULL. */
struct await *request_with_route(uint32_t thread, uint32_t call);
