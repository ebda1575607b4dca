/* Room for events: the blocks of this process, the pool of the whole experiment, and what is done where that is full. */
#pragma once

#include "core/threads.h"

/* The program waits where the pool is full, or events are dropped; full blocks go round in so many bytes (0: none is
   overwritten). */
void room_choose(bool wait_when_full, uint64_t ring_bytes);

/* Create the file of events; `overwritten` counts those that a ring lost. 0 or the error's number. */
int room_create(const char *directory);
void room_count_overwritten(uint64_t *overwritten);

/* Where the thread's next event goes, in a new block; NULL where there is no room. */
VISIBLE struct event *event_room(struct thread *thread);
