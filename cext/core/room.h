/* Room for events: the blocks of this process, the pool of the whole experiment, and what happens if it is full. */
#pragma once

#include "core/threads.h"

/* Whether the program waits if the pool is full, or events are dropped; and the size of the ring (0: none). */
void room_choose(bool wait_when_full, uint64_t ring_bytes);

/* Whether newer events replace older ones. */
bool room_is_ring(void);

/* Create the file of events. 0 or the error's number. */
int room_create(const char *directory);

/* The process counts in `head` what it takes from the pool, and what a ring loses. */
void room_count_in(struct file_head *head);

/* Whether there will be room for the thread's next event, as things are. The lock is held. */
bool room_for_event(const struct thread *thread);

/* Where the thread's next event goes, in a new block; NULL if there is no room. */
VISIBLE struct event *event_room(struct thread *thread);
