/* Fetches of rows, put together: what one cursor gives from one place, fast, is added to the event of a fetch that is
   already there, in place. So there is never anything that is not in the file yet, whatever ends the process.

   The event is in the block that the thread is writing; a new block begins a new event. A fetch that failed, that took
   long, or that had recorded calls inside is an event of its own. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "core/recorder.h"

/* Add a fetch that succeeded to the event of one before it; one without a row is the last. False: it is an event of its
   own. */
bool rows_gather(const void *owner, const struct span *span, uint64_t rows);

/* A fetch was recorded: those that follow may be added to its event. */
void rows_recorded(const void *owner, const struct span *span, uint64_t rows);

/* A statement was begun: what is fetched from the cursor, or from the result, is another iteration's. */
void rows_begin(struct thread *thread, const void *cursor, const void *result);
