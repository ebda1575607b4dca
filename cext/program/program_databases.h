/* Functions of database clients (native/database_calls.h), timed in place of those that the program's libraries have. */
#pragma once

#include "native/database_calls.h"
#include "native/native_call.h"

extern struct native databases[DATABASE_COUNT];
