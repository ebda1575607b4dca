#define _GNU_SOURCE
#include "core/room.h"

#include <errno.h>

#include "core/exclusive.h"
#include "core/pool_use.h"
#include "core/recorder.h"
#include "core/room_wait.h"
#include "core/session.h"

static struct {
    struct pool pool;
    bool wait_when_full;
    uint32_t ring_blocks;
    struct file_head *head; /* where this process counts what it took */
} room;

void room_choose(bool wait_when_full, uint64_t ring_bytes)
{
    room.wait_when_full = wait_when_full;
    room.ring_blocks = (uint32_t)(ring_bytes / BLOCK_BYTES);
    room_wait_begin();
}

bool room_is_ring(void)
{
    return room.ring_blocks > 0;
}

int room_create(const char *directory)
{
    return pool_create(&room.pool, directory, room.ring_blocks);
}

void room_count_in(struct file_head *head)
{
    room.head = head;
    room.pool.ring.overwritten = &head->overwritten;
}

/* --- how it is with a thread as a block begins */

static uint64_t less(uint64_t from, uint64_t what)
{
    return from > what ? from - what : 0;
}

/* What the calls in progress, of which the innermost is just being recorded, have taken for themselves so far. That one
   is already counted as made inside the one around it. */
static struct reading taken_by_open_calls(const struct thread_record *record, struct reading now)
{
    const struct open_call *outermost = NULL, *innermost = NULL;
    struct reading inner = {0, 0}, last = {0, 0};
    for (uint32_t index = 0; index < record->fields.depth && index < OPEN_CALLS; index++) {
        if (!record->open[index].call)
            continue;
        innermost = &record->open[index];
        outermost = outermost ? outermost : innermost;
        inner.wall_ns += innermost->inner_wall_ns;
        inner.cpu_ns += innermost->inner_cpu_ns;
    }
    if (!outermost)
        return inner;
    if (innermost != outermost)
        last = (struct reading){now.wall_ns - innermost->start_ns, now.cpu_ns - innermost->start_cpu_ns};
    return (struct reading){
        .wall_ns = less(now.wall_ns - outermost->start_ns + last.wall_ns, inner.wall_ns),
        .cpu_ns = less(now.cpu_ns - outermost->start_cpu_ns + last.cpu_ns, inner.cpu_ns),
    };
}

static struct block_begun begun_now(struct thread *thread)
{
    const struct thread_fields *fields = &thread->record->fields;
    struct reading now = clock_read(&thread->clock), open = taken_by_open_calls(thread->record, now);
    return (struct block_begun){
        .dropped = fields->dropped,
        .recorded = fields->recorded,
        .before_wall_ns = less(now.wall_ns - fields->start_ns, open.wall_ns),
        .before_cpu_ns = less(now.cpu_ns - fields->start_cpu_ns, open.cpu_ns),
        .own_wall_ns = fields->own_wall_ns,
        .own_cpu_ns = fields->own_cpu_ns,
    };
}

/* --- making room; the lock is held */

static bool is_full(const struct block *block)
{
    return block->head.used >= BLOCK_EVENTS;
}

/* A ring that finds no room goes round as it is. */
static int drain(struct thread *thread)
{
    struct control *control = recorder.control;
    bool grows = pool_grows(&room.pool) && pool_take_room(control, room.head);
    if (!grows && pool_grows(&room.pool) && !pool_settle(&room.pool))
        return EDQUOT;
    struct block_begun begun = begun_now(thread);
    int failed = pool_drain(&room.pool, thread->block, &begun);
    if (failed && grows)
        pool_return_room(control, room.head);
    return failed;
}

static int take_block(struct thread *thread)
{
    threads_collect(&room.pool);
    thread->block = pool_take(&room.pool, thread->number);
    return thread->block ? 0 : errno;
}

static int make_room(struct thread *thread)
{
    int failed = thread->block ? 0 : take_block(thread);
    if (failed)
        return failed;
    /* A thread may have left its block at the very moment when it was full. */
    return is_full(thread->block) ? drain(thread) : 0;
}

/* Whether it is time for a monitor, as a block begins or has no room: by what all processes took together, as each of
   them may be small. Where only the limit was reached, none makes room. */
static bool wants_monitor(const struct thread *thread, int failed)
{
    const struct control *control = recorder.control;
    bool is_time = failed ? failed == EDQUOT && pool_is_full(control) : !thread->block->head.used;
    return is_time && !room.ring_blocks && pool_wants_monitor(control);
}

static void refused(int error)
{
    if (error == EDQUOT) /* recording continues: there may be room again */
        __atomic_add_fetch(&recorder.control->full_drops, 1, __ATOMIC_RELAXED);
    else
        session_stop(error);
}

/* Whether there is no room now, but room may come and is waited for. */
static bool has_to_wait(const struct thread *thread)
{
    const struct control *control = recorder.control;
    bool grows = thread->block && is_full(thread->block) && pool_grows(&room.pool) && !pool_may_settle(&room.pool);
    return grows && room.wait_when_full && pool_is_full(control) && !pool_limit_is_reached(control) &&
           room_may_come(control);
}

bool room_for_event(const struct thread *thread)
{
    const struct control *control = recorder.control;
    bool grows = thread && thread->block && is_full(thread->block) && pool_grows(&room.pool);
    return !grows || pool_may_settle(&room.pool) || (room.wait_when_full && !pool_limit_is_reached(control)) ||
           !(pool_is_full(control) || pool_limit_is_reached(control));
}

/* Others may take the room that was made. The lock is held, or false. */
static bool begin_with_room(struct thread *thread)
{
    bool held = exclusive_begin(), hopes = true;
    while (held && hopes && has_to_wait(thread)) {
        exclusive_end();
        hopes = room_wait(recorder.control);
        held = exclusive_begin();
    }
    return held;
}

static bool find_room(struct thread *thread)
{
    if (!begin_with_room(thread))
        return false;
    int failed = make_room(thread);
    if (failed)
        refused(failed);
    bool monitor = wants_monitor(thread, failed);
    exclusive_end();
    if (monitor)
        room_call_monitor(recorder.control);
    return !failed;
}

struct event *event_room(struct thread *thread)
{
    if (session_stopped())
        return NULL;
    int saved = errno;
    struct reading begin = own_begin(thread);
    thread->describing++;
    bool found = find_room(thread);
    thread_note_clock(thread, clock_read(&thread->clock));
    own_end(thread, begin);
    thread->describing--;
    errno = saved;
    return found ? &thread->block->events[thread->block->head.used] : NULL;
}
