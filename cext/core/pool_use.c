/* The use of the pool: room is taken before a block is appended, and given back when its space is free again, so
   never more is given back than was taken. If the page says otherwise, somebody else has written there: its figures are
   then ignored, recording continues, and reports say so. */
#include "core/pool_use.h"

enum { MONITOR_BYTES = 16 * 1024 * 1024 };

static uint64_t taken_bytes(const struct control *control)
{
    return __atomic_load_n(&control->taken_bytes, __ATOMIC_RELAXED);
}

static uint64_t drained_bytes(const struct control *control)
{
    return __atomic_load_n(&control->drained_bytes, __ATOMIC_ACQUIRE);
}

/* Texts and all else count as well, from where they are more than what every process has. */
static uint64_t with_other_files(const struct control *control, uint64_t bytes)
{
    return bytes + __atomic_load_n(&control->other_bytes, __ATOMIC_RELAXED);
}

static bool pool_would_be_full(const struct control *control, uint64_t taken, uint64_t drained)
{
    uint64_t in_use = with_other_files(control, taken > drained ? taken - drained : 0);
    return control->pool_bytes && in_use + BLOCK_BYTES > control->pool_bytes;
}

static bool limit_would_be_reached(const struct control *control, uint64_t taken)
{
    return control->limit_bytes && with_other_files(control, taken) + BLOCK_BYTES > control->limit_bytes;
}

bool pool_is_full(const struct control *control)
{
    uint64_t drained = drained_bytes(control); /* first: what others take meanwhile does no harm */
    return pool_would_be_full(control, taken_bytes(control), drained);
}

bool pool_limit_is_reached(const struct control *control)
{
    return limit_would_be_reached(control, taken_bytes(control));
}

bool pool_wants_monitor(const struct control *control)
{
    uint64_t half = control->pool_bytes / 2;
    return taken_bytes(control) >= (half && half < MONITOR_BYTES ? half : MONITOR_BYTES);
}

static void note_most(struct control *control, uint64_t in_use)
{
    uint64_t most = __atomic_load_n(&control->most_bytes, __ATOMIC_RELAXED);
    while (in_use > most &&
           !__atomic_compare_exchange_n(&control->most_bytes, &most, in_use, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        ;
}

/* Take room for a block, in one step with the question whether there is any: other processes ask as well. */
bool pool_take_room(struct control *control, struct file_head *head)
{
    uint64_t drained = drained_bytes(control), taken = taken_bytes(control);
    do {
        if (pool_would_be_full(control, taken, drained) || limit_would_be_reached(control, taken))
            return false;
    } while (!__atomic_compare_exchange_n(&control->taken_bytes, &taken, taken + BLOCK_BYTES, false, __ATOMIC_RELAXED,
                                          __ATOMIC_RELAXED));
    __atomic_add_fetch(&head->taken_bytes, BLOCK_BYTES, __ATOMIC_RELAXED);
    note_most(control, taken + BLOCK_BYTES > drained ? taken + BLOCK_BYTES - drained : 0);
    return true;
}

void pool_return_room(struct control *control, struct file_head *head)
{
    __atomic_sub_fetch(&head->taken_bytes, BLOCK_BYTES, __ATOMIC_RELAXED);
    __atomic_sub_fetch(&control->taken_bytes, BLOCK_BYTES, __ATOMIC_RELAXED);
}
