/* The waits of an event loop that is written in C, as uvloop's and gevent's are: the functions of the C library by which its module waits for
   descriptors, and by which it reads, writes and connects them, exchanged in its import table. Only the waits are recorded; the
   others tell whether who waits does so for new work or for an answer. The module waits without the interpreter lock. */
#pragma once

#include <stdbool.h>

#include "hooks/slot.h"

/* Are any recorded? */
bool loop_waits_are_on(void);

/* For the waits of one module more; NULL if there are too many. */
struct slot *loop_waits_slot(void);

/* From now on the waits of the module that has the code `within` are calls of that slot. NULL, or why not. */
const char *loop_waits_begin(struct slot *slot, const void *within);

/* Restore what was exchanged. False if somebody else has replaced ours since. */
bool loop_waits_end(void);
