/* A native call: what its wrapper does before and after the real function.

   It may be made by any thread, with or without the interpreter's lock, and in a signal handler. It allocates nothing, calls
   nothing of Python's, and waits for nobody but the recorder's own lock. It passes through where the thread is not known to
   the recorder, where recording's own code makes it, and in a signal handler that interrupts another native call or the
   recorder's work on the thread; these last are counted. */
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdbool.h>
#include <stdint.h>

#include "core/recorder.h"
#include "hooks/slot.h"
#include "native/native_calls.h"

struct native {
    struct slot slot; /* what is known of the intrinsic; numbers are 0 where it is not recorded */
    void *real;       /* the C library's function; NULL where it has none of that name */
};

extern struct native natives[NATIVE_COUNT];

struct native_call {
    struct span span; /* its thread is NULL where the call is not timed */
    const struct slot *slot;
    intptr_t subject;
};

/* False: pass through, there is nothing to end. `caller` is where it returns to, `frame` where the wrapper's frame lies. */
bool native_begin(struct native_call *call, enum native_number number, intptr_t subject, const void *caller,
                  uintptr_t frame);

/* The call has given `result`, or has failed with that error. errno stays as it is. */
void native_end(struct native_call *call, int64_t result, int error);

/* What becomes of calls of a number from now on; false where no native intrinsic has it. */
bool native_lower(uint32_t number, enum level level);
