/* The waits of an event loop written in C, such as uvloop's and gevent's. Its module calls functions of the C library to wait for
   descriptors, and to read, write and connect them. These functions are exchanged in its import table. Only the waits are
   recorded; the others tell whether a wait is for new work or for an answer. The module waits without the interpreter lock. */
#pragma once

#include <stdbool.h>

#include "hooks/slot.h"

/* Are any recorded? */
bool loop_waits_are_on(void);

/* A slot for the waits of one more module; NULL if there are too many. */
struct slot *loop_waits_slot(void);

/* From now on, the waits of the module that contains the code `within` are calls of that slot. NULL, or the reason why not. */
const char *loop_waits_begin(struct slot *slot, const void *within);

/* Restore what was exchanged. False if somebody else has replaced ours since. */
bool loop_waits_end(void);
