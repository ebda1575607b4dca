/* One lock for rare work: a new thread, a full block, a new text. Any thread may take it, with or without Python; a
   call that finds all it needs takes none. It is held only for bounded work. It is in memory that a forked child finds
   zeroed, so a child never inherits a lock without its holder. */
#pragma once

#include <stdbool.h>

#include "core/visible.h"

/* Make its memory, once. 0 or the error's number. */
int exclusive_prepare(void);

/* Take it. False if this thread holds it already, as in a signal handler that interrupts rare work, and if the
   holder does not release it in time: what needs the lock is then not recorded. The thread cannot be cancelled until
   it has released it. errno may change. */
VISIBLE bool exclusive_begin(void);
VISIBLE void exclusive_end(void);
