/* The wrapper of each native intrinsic, and its declaration. */
#pragma once

#include "native/native_calls.h"

struct native_row {
    const char *name, *kinds, *choice, *detail, *moves, *effect;
    void *wrapper;
};

extern const struct native_row native_rows[NATIVE_COUNT];
