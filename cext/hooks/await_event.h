/* The event of an awaited call that has ended. */
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>

#include "core/clock.h"
#include "core/recorder.h"
#include "hooks/await_table.h"

struct step {
    struct thread *thread; /* NULL: it is not timed */
    struct reading begin;
    uint32_t index, call;
    bool gives_way; /* to others that are ready, and waits for nothing */
    PyObject *awaited;
    PyObject *result; /* of the whole, if this was the last step and it is recorded; no reference */
};

/* What it is about, as far as it is known; `result` is NULL, or that of the whole. */
uint32_t detail_of_await(const struct await *await, PyObject *result);

/* What the whole moved: as its result tells, or its arguments did. */
uint64_t bytes_of_await(const struct await *await, PyObject *result);

/* The route of a request in progress, as far as it is known; or 0. */
uint32_t route_of_request(uint32_t thread, uint32_t call);

/* A fetch of rows that never was suspended, as a call would be. */
struct span span_of_step(const struct step *step, uint64_t wall_ns, uint64_t cpu_ns);

/* Let collectors change it; they may run for others meanwhile, so the table may grow. NULL: it is gone. */
struct await *collect_await(const struct step *step, struct await *await, uint64_t wall_ns);

/* The event of an await that has ended. */
void await_record(const struct step *step, struct await *await, uint64_t end_ns, uint64_t bytes, uint32_t error);
