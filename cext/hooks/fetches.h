/* Combined fetches of rows: what one cursor gives to one line, fast, is added in place to the event of an earlier
   fetch. So nothing is ever missing from the file, however the process ends. The event is in the block that the thread
   is writing; a new block begins a new event. A fetch that failed, that took long, or that contains recorded calls has
   an event of its own. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "core/recorder.h"

/* Add a fetch that succeeded to the event of one before it; one without a row is the last. False: it is an event of its
   own. */
bool rows_gather(const void *owner, const struct span *span, uint64_t rows);

/* A fetch was recorded: those that follow may be added to its event. */
void rows_recorded(const void *owner, const struct span *span, uint64_t rows);

/* A statement began: later fetches from the cursor, or from the result, belong to another iteration. */
void rows_begin(struct thread *thread, const void *cursor, const void *result);
