#include "native/database_calls.h"

#include "native/native_wrappers.h"

#define ROW(library, name, detail, moves) {#library, #name, "db", "outermost", detail, moves, "", 0},
#define WAITING_ROW(library, name, detail, moves) {#library, #name, "db idle", "blocking", detail, moves, "", 0},
const struct native_row database_rows[] = {SQL_CALLS(ROW) ACTING_MESSAGE_CALLS(ROW) WAITING_MESSAGE_CALLS(WAITING_ROW)};
