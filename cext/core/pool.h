/* The pool: each thread writes into a block of its own in the mapped file of events, so a killed process loses
   nothing. A full block is appended to the file by write(2), and the thread continues in the same, warm pages. A copy
   is cheaper than fresh pages of the mapping: 20 ns an event instead of 70 on ext4, where a page fault takes 3 us. In
   ring mode the number of full blocks is limited: the next one replaces the oldest. */
#pragma once

#include "core/file.h"

struct block {
    struct block_head head;
    struct event events[BLOCK_EVENTS];
};

enum { POOL_LEFT = 1024 }; /* blocks of ended threads that wait for the next thread; more than that stay as they are */

/* The offsets of the full blocks of a ring, by their numbers, and which of them is the oldest. */
struct ring {
    uint32_t *places;
    uint32_t room;   /* the number of entries */
    uint32_t blocks; /* that go round; 0: there is no ring */
    uint32_t used, oldest;
    uint64_t *overwritten; /* counts the lost events */
};

/* The state of a thread when it begins a block. */
struct block_begun {
    uint64_t dropped, recorded;
    uint64_t before_wall_ns, before_cpu_ns;
    uint64_t own_wall_ns, own_cpu_ns;
};

struct pool {
    struct grown_file file;
    struct ring ring;
    uint64_t sequence;
    unsigned left_count;
    struct block *left[POOL_LEFT];
};

/* Create the file of events, with a ring of this many blocks, or none. 0 or the error number. */
int pool_create(struct pool *pool, const char *directory, uint32_t ring_blocks);

/* Will the next full block make the file longer? */
bool pool_grows(const struct pool *pool);

/* Let the ring continue at its present size. False if it is empty, or there is none. */
bool pool_may_settle(const struct pool *pool);
bool pool_settle(struct pool *pool);

/* A block to write into: one that an ended thread left, which may be full, or a new one. NULL with errno set where the
   file cannot grow. As soon as a block is whole in the file it has its head: one without is a hole, given back. */
struct block *pool_take(struct pool *pool, uint32_t thread);

/* Append a copy of the full block to the file, or put it in place of the oldest in the ring, and empty the block.
   Only a copy ever has the state full: without a ring, anybody may compress a block in that state and free its space,
   because nobody has it mapped. 0 or the error number; the block then stays unchanged. */
int pool_drain(struct pool *pool, struct block *block, const struct block_begun *begun);

/* The block's thread has ended. */
void pool_leave(struct pool *pool, struct block *block);
