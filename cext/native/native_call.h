/* A native call: what its wrapper does before and after the real function. Any thread may make one, with or without
   the interpreter lock, also in a signal handler. It allocates nothing, calls no Python function, and waits for nothing
   but the recorder's own lock. It passes through if the recorder does not know the thread, if recording code makes it,
   and in a signal handler that interrupts recording on the thread; these last are counted. In a handler that interrupts
   the real function of another native call, it is inside that one. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "core/recorder.h"
#include "hooks/slot.h"
#include "native/native_calls.h"

struct native {
    struct slot slot; /* the data of the intrinsic; numbers are 0 if it is not recorded */
    void *real;       /* the C library's function; NULL if it has none of that name */
};

extern struct native natives[NATIVE_COUNT];

/* The subject of a call about a statement. */
struct native_statement {
    const char *text; /* NULL: of a statement before it, which its detail was kept of */
    size_t bytes;
    uint32_t detail;
};

/* The subject of a call that connects a socket. */
struct native_connection {
    int number;
    const void *address;
    size_t bytes;
};

struct native_call {
    struct span span; /* its thread is NULL if the call is not timed */
    const struct slot *slot;
    intptr_t subject;
    uint32_t failed; /* the name of its error, if it is no number of the C library's */
};

/* False: pass through, there is nothing to end. `caller` is its return address, `frame` the address of the wrapper's
   frame. */
bool native_begin(struct native_call *call, const struct native *native, intptr_t subject, const void *caller,
                  uintptr_t frame);

/* The call has given `result`, or has failed with that error. errno stays as it is. */
void native_end(struct native_call *call, int64_t result, int error);

/* What becomes of calls of a number from now on; false if no native intrinsic has it. */
bool native_lower(uint32_t number, enum level level);
