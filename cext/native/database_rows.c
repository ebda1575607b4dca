#include "native/database_calls.h"

#include "native/native_wrappers.h"

#define ROW(library, name, detail, moves) {#library, #name, "db", "outermost", detail, moves, "", 0},
const struct native_row database_rows[] = {DATABASE_CALLS(ROW)};
