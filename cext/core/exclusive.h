/* One lock for what is rare: a new thread, a full block, a text never seen before. Any thread may take it, with or
   without Python; a call that finds all it needs takes none.

   It is held for bounded work. It lies in memory that a forked child finds zeroed, so that the child is never left with
   a lock whose holder it does not have. */
#pragma once

#include <stdbool.h>

#include "core/visible.h"

/* Make its memory, once. 0 or the error's number. */
int exclusive_prepare(void);

/* Take it. False where this thread holds it already, which a signal handler finds that interrupts rare work, and where
   whoever holds it does not let go of it in time: then nothing is recorded of what was to be. The thread is not cancelled
   until it has let go. errno may change. */
VISIBLE bool exclusive_begin(void);
VISIBLE void exclusive_end(void);
