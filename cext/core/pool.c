#define _GNU_SOURCE
#include "core/pool.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

_Static_assert(sizeof(struct block) == BLOCK_BYTES, "a block is what the format says");

static int ring_create(struct ring *ring, uint32_t blocks)
{
    if (ring->places)
        munmap(ring->places, ring->room * sizeof *ring->places);
    *ring = (struct ring){.room = blocks, .blocks = blocks};
    if (!blocks)
        return 0;
    void *places = mmap(NULL, blocks * sizeof *ring->places, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (places == MAP_FAILED)
        return errno;
    ring->places = places;
    return 0;
}

int pool_create(struct pool *pool, const char *directory, uint32_t ring_blocks)
{
    int failed = ring_create(&pool->ring, ring_blocks);
    pool->sequence = 0;
    pool->left_count = 0;
    return failed ? failed : file_create(&pool->file, directory, data_types[DATA_EVENTS].name);
}

bool pool_grows(const struct pool *pool)
{
    return !pool->ring.blocks || pool->ring.used < pool->ring.blocks;
}

bool pool_may_settle(const struct pool *pool)
{
    return pool->ring.used > 0;
}

bool pool_settle(struct pool *pool)
{
    if (pool->ring.used)
        pool->ring.blocks = pool->ring.used;
    return pool->ring.used > 0;
}

enum { BODY_BYTES = BLOCK_BYTES - sizeof(struct block_head) };

static int put_in_ring(struct ring *ring, struct grown_file *file, const struct block_head *head,
                       const struct block *block)
{
    if (ring->used < ring->blocks) {
        uint32_t place = (uint32_t)(file->bytes / BLOCK_BYTES);
        int failed = file_append(file, head, sizeof *head, block->events, BODY_BYTES);
        if (!failed)
            ring->places[ring->used++] = place;
        return failed;
    }
    /* Count first, so that a reader that misses the oldest block knows why. */
    __atomic_add_fetch(ring->overwritten, BLOCK_EVENTS, __ATOMIC_RELEASE);
    uint64_t at = (uint64_t)ring->places[ring->oldest] * BLOCK_BYTES;
    ring->oldest = (ring->oldest + 1) % ring->blocks;
    return file_replace(file, at, head, sizeof *head, block->events, BODY_BYTES);
}

/* Empty it before it gets a new number: a reader that finds the old number here and in a copy uses the copy. */
static void empty(struct pool *pool, struct block *block, const struct block_begun *begun)
{
    __atomic_store_n(&block->head.used, 0, __ATOMIC_RELEASE);
    block->head.first_ns = UINT64_MAX;
    block->head.last_ns = 0;
    block->head.dropped = begun->dropped;
    block->head.recorded = begun->recorded;
    block->head.before_wall_ns = begun->before_wall_ns;
    block->head.before_cpu_ns = begun->before_cpu_ns;
    block->head.own_wall_ns = begun->own_wall_ns;
    block->head.own_cpu_ns = begun->own_cpu_ns;
    __atomic_store_n(&block->head.sequence, ++pool->sequence, __ATOMIC_RELEASE);
}

static struct block *take_new(struct pool *pool)
{
    const struct block_head head = {.magic = BLOCK_MAGIC, .state = BLOCK_WRITING};
    uint64_t at = pool->file.bytes;
    int failed = file_append(&pool->file, &head, sizeof head, NULL, 0);
    struct block *block = failed ? NULL : file_map(&pool->file, at, BLOCK_BYTES, BLOCK_BYTES);
    errno = failed ? failed : errno;
    if (!block)
        return NULL;
    madvise(block, BLOCK_BYTES, MADV_DONTFORK);
    empty(pool, block, &(struct block_begun){0});
    return block;
}

struct block *pool_take(struct pool *pool, uint32_t thread)
{
    struct block *block = pool->left_count ? pool->left[--pool->left_count] : take_new(pool);
    if (block) {
        block->head.thread = thread;
        block->head.state = BLOCK_WRITING;
    }
    return block;
}

int pool_drain(struct pool *pool, struct block *block, const struct block_begun *begun)
{
    struct block_head copied = block->head;
    copied.state = BLOCK_FULL;
    int failed = pool->ring.blocks ? put_in_ring(&pool->ring, &pool->file, &copied, block)
                                   : file_append(&pool->file, &copied, sizeof copied, block->events, BODY_BYTES);
    if (failed)
        return failed;
    empty(pool, block, begun);
    return 0;
}

void pool_leave(struct pool *pool, struct block *block)
{
    block->head.state = BLOCK_LEFT;
    if (pool->left_count < POOL_LEFT)
        pool->left[pool->left_count++] = block;
    else
        munmap(block, BLOCK_BYTES);
}
