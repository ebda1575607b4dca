#define _GNU_SOURCE
#include "pool.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

_Static_assert(sizeof(struct block) == BLOCK_BYTES, "a block is what the format says");

int pool_create(struct pool *pool, const char *directory)
{
    memset(pool, 0, sizeof *pool);
    return file_create(&pool->file, directory, data_types[DATA_EVENTS].name);
}

/* Empty before it has a new number: whoever finds the old number here and in an appended copy takes the copy. */
static void empty(struct pool *pool, struct block *block, uint64_t dropped)
{
    __atomic_store_n(&block->head.used, 0, __ATOMIC_RELEASE);
    block->head.first_ns = UINT64_MAX;
    block->head.last_ns = 0;
    block->head.dropped = dropped;
    __atomic_store_n(&block->head.sequence, ++pool->sequence, __ATOMIC_RELEASE);
}

static struct block *take_new(struct pool *pool)
{
    struct block *block = file_map(&pool->file, pool->file.bytes, BLOCK_BYTES, BLOCK_BYTES);
    if (!block)
        return NULL;
    madvise(block, BLOCK_BYTES, MADV_DONTFORK);
    empty(pool, block, 0);
    block->head.magic = BLOCK_MAGIC;
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

int pool_drain(struct pool *pool, struct block *block, uint64_t dropped)
{
    block->head.state = BLOCK_FULL;
    int failed = file_append(&pool->file, block, BLOCK_BYTES);
    if (failed)
        return failed;
    empty(pool, block, dropped);
    block->head.state = BLOCK_WRITING;
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
