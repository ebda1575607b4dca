/* The wrapper of each native intrinsic, and its declaration; functions of databases have their wrappers in
   program/program_databases.c. */
#pragma once

#include "native/database_calls.h"
#include "native/native_calls.h"

struct native_row {
    const char *library, *name, *kinds, *choice, *detail, *moves, *effect;
    void *wrapper;
};

extern const struct native_row native_rows[NATIVE_COUNT], database_rows[DATABASE_COUNT];
