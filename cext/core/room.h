/* Room for events: the blocks of this process, the pool of the whole experiment, and what is done where that is full. */
#pragma once

#include "core/threads.h"

/* The program waits where the pool is full, or events are dropped; full blocks go round in so many bytes (0: none is
   overwritten). */
void room_choose(bool wait_when_full, uint64_t ring_bytes);

/* Create the file of events. 0 or the error's number. */
int room_create(const char *directory);

/* The process counts in `head` what it takes of the pool, and what a ring loses. */
void room_count_in(struct file_head *head);

/* Will there be room for the thread's next event, as it stands? The lock is held. */
bool room_for_event(const struct thread *thread);

/* Where the thread's next event goes, in a new block; NULL where there is no room. */
VISIBLE struct event *event_room(struct thread *thread);
