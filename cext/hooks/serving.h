/* Requests that a call waits for before it answers them. Such a call is not recorded until the request is there:
   then an entry in the table of calls in progress begins, which that call ends. The wait before it is inside
   nothing. */
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdbool.h>
#include <stdint.h>

#include "core/recorder.h"
#include "hooks/call.h"

/* Do a server's handlers take the requests of a connection one by one? Those that are not plainly of a class may. */
bool takes_requests(const struct call *call);

/* Of a call that waits for a request: that it does. Of one that has it: the call around it begins. Of one that finds its
   route, begins another tracer's span or carries a transaction: nothing yet. */
bool begin_serving(struct call *call, struct thread *thread, PyThreadState *state);

/* A request has arrived, for the call around that waits for it. */
void request_arrived(const struct call *call, PyObject *result);

extern uint32_t marking; /* the intrinsic of marked transactions, which have their own names */

/* What the innermost of the calls in progress that are the program's own work is about is known now. */
void tell_route(const struct call *call);

/* A transaction inside a request that is not sampled leaves no event. The request takes its name, which says more. */
void name_request_around(const struct span *inside, uint32_t detail);

/* A call that serves a request has ended: its detail is known now. */
void name_request(struct call *call);

/* The same, and its trace context is kept. */
void describe_request(struct call *call);

void end_serving(struct call *call, bool failed);
