/* The pool: each thread writes into a block of its own in the mapped file of events, so a killed process loses nothing;
   a full block is appended to the file by write(2), and the thread goes on in the same, warm pages.

   Writing a copy is cheaper than going on in fresh pages of the mapping: 20 ns an event against 70 on ext4, of which a
   fault takes 3 us a page.

   In ring mode only so many full blocks are kept: the next one is written over the oldest. */
#pragma once

#include "core/file.h"

struct block {
    struct block_head head;
    struct event events[BLOCK_EVENTS];
};

enum { POOL_LEFT = 1024 }; /* blocks of ended threads that wait for the next thread; more than that stay as they are */

/* Where in the file the full blocks of a ring lie, by their numbers there, and which of them is the oldest. */
struct ring {
    uint32_t *places;
    uint32_t room;   /* for so many places */
    uint32_t blocks; /* that go round; 0: there is no ring */
    uint32_t used, oldest;
    uint64_t *overwritten; /* counts the events that are gone */
};

/* How it is with a thread when a block of its is begun. */
struct block_begun {
    uint64_t dropped, recorded;
    uint64_t before_wall_ns, before_cpu_ns;
    uint64_t own_wall_ns, own_cpu_ns;
};

struct pool {
    struct grown_file file;
    struct ring ring;
    uint64_t sequence;
    struct block *left[POOL_LEFT];
    unsigned left_count;
};

/* Create the file of events, with a ring of so many blocks, or none. 0 or the error's number. */
int pool_create(struct pool *pool, const char *directory, uint32_t ring_blocks);

/* Will the next full block make the file longer? */
bool pool_grows(const struct pool *pool);

/* Can the ring go round as it is? Let it, without growing any more. False where nothing is in it, or there is none. */
bool pool_may_settle(const struct pool *pool);
bool pool_settle(struct pool *pool);

/* A block to write into: one that an ended thread left, which may be full, or a new one. NULL with errno set where the
   file cannot grow. As soon as a block is whole in the file it has its head: one without is a hole, given back. */
struct block *pool_take(struct pool *pool, uint32_t thread);

/* Append a copy of the full block to the file, or put it in the place of the oldest in the ring, and empty the block.
   Only the copy is ever in the state full: whoever finds that state, where there is no ring, may compress the block and
   take its space away, for nobody has it mapped. 0 or the error's number; then it stays as it is. */
int pool_drain(struct pool *pool, struct block *block, const struct block_begun *begun);

/* The block's thread has ended. */
void pool_leave(struct pool *pool, struct block *block);
