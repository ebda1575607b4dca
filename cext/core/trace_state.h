/* What other tracers say of a trace (`tracestate` of W3C's Trace Context): a list of keys with values. It is passed on as
   it came, and kept in no file. */
#pragma once

#include <stddef.h>

#include "core/visible.h"

enum { TRACE_STATE_BYTES = 512 }; /* the standard has at least as many passed on; without a zero behind them */

/* Write the members of a list with commas between them and a zero behind. If there is not room for all, those longer
   than 128 bytes are left out, and then the last ones. Returns how many bytes there are: none if the list is invalid. */
VISIBLE size_t trace_state_keep(const char *text, size_t bytes, char kept[TRACE_STATE_BYTES + 1]);
