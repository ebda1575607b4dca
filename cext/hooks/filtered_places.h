/* The filter's decision about a place in the code, made once. A call from the standard library or an installed
   package belongs to the line of the program's own code that led to it, as in reports. */
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdbool.h>
#include <stdint.h>

#include "core/filter.h"
#include "cpython/frame.h"

/* The decision about a place, below the filter's serial, which is read before it is decided. */
enum { DECIDED_BITS = 2, LEFT_OUT = 1 };

static inline uint32_t decided(uint32_t serial, unsigned bits)
{
    return serial << DECIDED_BITS | bits;
}

static inline bool is_decided(uint32_t verdict, uint32_t serial)
{
    return (verdict ^ decided(serial, 0)) >> DECIDED_BITS == 0;
}

/* An exception that is set stays as it is. */
unsigned decide(frame *here, unsigned (*by)(const struct call_site *));

bool site_passes(PyThreadState *state);
