#include "hooks/fetches.h"

#include "core/fields.h"
#include "core/pool.h"
#include "core/visible.h"

/* Above this rate fetches are combined: after a number of them with at most this mean distance. */
enum { ROWS_SINGLE = 10, ROW_APART_NS = 1000000 };

static struct gathering *find_gathering(struct thread *thread, const void *owner, const struct open_call *open,
                                        uint32_t parent)
{
    for (uint32_t place = 0; place < thread->gatherings; place++) {
        struct gathering *each = &thread->gathering[place];
        if (each->owner == owner && each->stack == open->stack && each->intrinsic == open->intrinsic &&
            each->parent == parent)
            return each;
    }
    return NULL;
}

/* Is the event still in the block that is being written? */
static bool is_within_reach(const struct gathering *gathering, const struct thread *thread)
{
    const struct block *block = thread->block;
    return block && block == gathering->block && block->head.sequence == gathering->sequence;
}

/* Whether they come fast enough. If not, counting starts again here. */
static bool comes_fast(struct gathering *gathering, uint64_t now_ns)
{
    if (recorder.rows == ROWS_cursor)
        return true;
    if (now_ns - gathering->first_ns > (uint64_t)gathering->fetches * ROW_APART_NS) {
        gathering->first_ns = now_ns;
        gathering->fetches = 0;
    }
    return gathering->fetches >= ROWS_SINGLE;
}

static uint32_t parent_of(const struct thread_record *record, uint32_t index)
{
    return index ? record->open[index - 1].call : 0;
}

static void add_fetch(struct gathering *gathering, const struct span *span, uint64_t rows)
{
    struct thread *thread = span->thread;
    struct thread_record *record = thread->record;
    struct event *event = &gathering->block->events[gathering->place];
    uint64_t end_ns = span->begin.wall_ns + span->wall_ns;
    charge_parent(record, span);
    event->wall_ns += span->wall_ns; /* first: a reader meanwhile never finds more CPU than wall time */
    event->cpu_ns += span->cpu_ns;
    event->bytes += rows;
    if (end_ns > gathering->block->head.last_ns)
        gathering->block->head.last_ns = end_ns;
    record->fields.made--;
    record->fields.gathered++;
    close_call(record, span->index);
    if (UNLIKELY(end_ns >= thread->look_ns))
        thread_look(thread);
}

bool rows_gather(const void *owner, const struct span *span, uint64_t rows)
{
    struct thread *thread = span->thread;
    struct thread_record *record = thread->record;
    struct gathering *found =
        find_gathering(thread, owner, &record->open[span->index], parent_of(record, span->index));
    bool had_calls = thread->calls != span->call;
    if (!found || !comes_fast(found, span->begin.wall_ns) || !is_within_reach(found, thread) || had_calls ||
        span->wall_ns >= recorder.long_ns)
        return false;
    found->fetches++;
    add_fetch(found, span, rows);
    if (rows == 0)
        found->owner = NULL;
    return true;
}

static struct gathering *take_gathering(struct thread *thread)
{
    for (uint32_t place = 0; place < thread->gatherings; place++)
        if (!thread->gathering[place].owner)
            return &thread->gathering[place];
    if (thread->gatherings < GATHERINGS)
        return &thread->gathering[thread->gatherings++];
    return &thread->gathering[thread->next_gathering++ % GATHERINGS];
}

void rows_recorded(const void *owner, const struct span *span, uint64_t rows)
{
    struct thread *thread = span->thread;
    struct thread_record *record = thread->record;
    const struct open_call *open = &record->open[span->index]; /* as it was, until the next call */
    uint32_t parent = parent_of(record, span->index);
    struct gathering *found = find_gathering(thread, owner, open, parent);
    struct block *block = thread->block;
    if (rows == 0 || !block || !block->head.used) {
        if (found)
            found->owner = NULL;
        return;
    }
    if (!found) {
        found = take_gathering(thread);
        *found = (struct gathering){.owner = owner, .intrinsic = open->intrinsic, .stack = open->stack,
                                    .parent = parent, .first_ns = span->begin.wall_ns};
    }
    bool single = recorder.rows == ROWS_auto && found->fetches < ROWS_SINGLE;
    if (single || !is_within_reach(found, thread)) {
        found->block = block;
        found->sequence = block->head.sequence;
        found->place = block->head.used - 1;
    }
    found->fetches++;
}

void rows_begin(struct thread *thread, const void *cursor, const void *result)
{
    for (uint32_t place = 0; place < thread->gatherings; place++)
        if (thread->gathering[place].owner == cursor || thread->gathering[place].owner == result)
            thread->gathering[place].owner = NULL;
}
