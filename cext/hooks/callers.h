/* Who called, where that shows what a call waits for. */
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdbool.h>

#include "hooks/call.h"
#include "hooks/open_calls.h"

/* Is the waiting thread one of a package or of multiprocessing that only does the work it is given? */
bool is_worker(void);

/* Does gRPC itself wait? Another thread of it receives. */
bool is_client_with_receiver(void);

/* Does a pool of a package wait, such as one of connections? Its queue holds what others give back. `stack` is the
   number of the caller's stack, by which the answer is known from then on; 0 if stacks are not kept. */
bool is_stock(uint32_t stack);

/* Does a client of RabbitMQ wait for deliveries, rather than for the answer to something that it sent? */
bool awaits_deliveries(const struct call *call, const struct thread *thread);
