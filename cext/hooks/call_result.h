/* How a call ended: the error that it raised, the bytes that it moved. */
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdbool.h>
#include <stdint.h>

#include "core/visible.h"
#include "hooks/call.h"
#include "hooks/slot.h"

/* The same of the exception that is set, which stays; EINVAL where it never came to a system call. */
uint32_t error_number_here(void);

/* The exception that is set, by its type's name and the system's error number; it stays set. What began then failed. */
uint32_t error_here(uint64_t begun_ns);

/* Is its buffer given by a method written in Python? That is not called. */
bool is_programs_buffer(PyObject *object);

uint64_t size_of(PyObject *moved);

/* Of messages that were sent or received. */
uint64_t size_of_sent(const struct call *call, PyObject *result);

uint64_t rows_of(const struct slot *slot, PyObject *result);

static inline uint64_t bytes_of(const struct call *call, PyObject *result)
{
    if (LIKELY(call->slot->moves == MOVES_none || call->slot->moves == MOVES_frame))
        return 0;
    if (call->slot->moves >= MOVES_row)
        return rows_of(call->slot, result);
    if (call->slot->moves == MOVES_value || call->slot->moves == MOVES_messages)
        return size_of_sent(call, result);
    return size_of(call->slot->moves == MOVES_result ? result : argument_of(call, 0));
}
