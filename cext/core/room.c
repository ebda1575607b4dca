#define _GNU_SOURCE
#include "core/room.h"

#include <errno.h>
#include <time.h>

#include "core/exclusive.h"
#include "core/monitor.h"
#include "core/recorder.h"
#include "core/session.h"

/* A monitor without a sign of life for this long counts as dead; and how long to wait before checking again. */
#define MONITOR_SILENT_NS 3000000000ull
#define FIRST_STEP_NS 1000000ull
#define LONGEST_STEP_NS 1000000000ull
/* So long one that lives and makes no room (its disk is full, say) is waited for, until it makes some. */
#define LONGEST_FRUITLESS_NS 10000000000ull

static struct {
    struct pool pool;
    bool wait_when_full;
    uint32_t ring_blocks;
    uint64_t grown_bytes;                 /* since a monitor was asked for */
    uint64_t called_ns;                   /* when one was called to make room */
    uint64_t drained_bytes, fruitless_ns; /* as last looked at while waiting for room, and how long in vain since */
    struct file_head *head;               /* where this process counts what it took */
} room;

void room_choose(bool wait_when_full, uint64_t ring_bytes)
{
    room.wait_when_full = wait_when_full;
    room.ring_blocks = (uint32_t)(ring_bytes / BLOCK_BYTES);
    room.fruitless_ns = 0;
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

/* --- how full the pool is: room is taken before a block is appended, and given back when its space is free again, so
   at no time is more given back than was taken. Where the page says so all the same, somebody else has written there:
   nothing of it is to be believed, the recording goes on, and reports say it. */

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

static bool pool_is_full(const struct control *control)
{
    uint64_t drained = drained_bytes(control); /* first: what is taken meanwhile does no harm */
    return pool_would_be_full(control, taken_bytes(control), drained);
}

static bool limit_is_reached(const struct control *control)
{
    return limit_would_be_reached(control, taken_bytes(control));
}

static void note_most(struct control *control, uint64_t in_use)
{
    uint64_t most = __atomic_load_n(&control->most_bytes, __ATOMIC_RELAXED);
    while (in_use > most &&
           !__atomic_compare_exchange_n(&control->most_bytes, &most, in_use, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        ;
}

/* Take room for a block, in one step with the question whether there is any: other processes ask as well. */
static bool take_room(struct control *control)
{
    uint64_t drained = drained_bytes(control), taken = taken_bytes(control);
    do {
        if (pool_would_be_full(control, taken, drained) || limit_would_be_reached(control, taken))
            return false;
    } while (!__atomic_compare_exchange_n(&control->taken_bytes, &taken, taken + BLOCK_BYTES, false, __ATOMIC_RELAXED,
                                          __ATOMIC_RELAXED));
    __atomic_add_fetch(&room.head->taken_bytes, BLOCK_BYTES, __ATOMIC_RELAXED);
    note_most(control, taken + BLOCK_BYTES > drained ? taken + BLOCK_BYTES - drained : 0);
    return true;
}

/* The block was not appended. */
static void return_room(struct control *control)
{
    __atomic_sub_fetch(&room.head->taken_bytes, BLOCK_BYTES, __ATOMIC_RELAXED);
    __atomic_sub_fetch(&control->taken_bytes, BLOCK_BYTES, __ATOMIC_RELAXED);
}

/* --- waiting for room, where the user chose so: no lock is held meanwhile */

static bool monitor_lives(const struct control *control)
{
    uint64_t sign_ns = __atomic_load_n(&control->monitor_ns, __ATOMIC_RELAXED);
    return sign_ns && sign_ns + MONITOR_SILENT_NS > clock_ns(CLOCK_MONOTONIC);
}

/* Is it worth waiting: has room been made in the time that this process waited last? */
static bool hopes_for_room(const struct control *control)
{
    uint64_t drained = __atomic_load_n(&control->drained_bytes, __ATOMIC_RELAXED);
    if (__atomic_exchange_n(&room.drained_bytes, drained, __ATOMIC_RELAXED) != drained)
        __atomic_store_n(&room.fruitless_ns, 0, __ATOMIC_RELAXED);
    return __atomic_load_n(&room.fruitless_ns, __ATOMIC_RELAXED) < LONGEST_FRUITLESS_NS;
}

static void sleep_ns(uint64_t wanted_ns)
{
    struct timespec step = {(time_t)(wanted_ns / 1000000000u), (long)(wanted_ns % 1000000000u)};
    nanosleep(&step, NULL);
}

static void wait_for_monitor(struct control *control)
{
    uint64_t step_ns = FIRST_STEP_NS;
    while (pool_is_full(control) && monitor_lives(control) && hopes_for_room(control)) {
        uint64_t begin_ns = clock_ns(CLOCK_MONOTONIC);
        sleep_ns(step_ns);
        uint64_t waited_ns = clock_ns(CLOCK_MONOTONIC) - begin_ns;
        __atomic_add_fetch(&room.fruitless_ns, waited_ns, __ATOMIC_RELAXED);
        __atomic_add_fetch(&control->full_waits, 1, __ATOMIC_RELAXED);
        __atomic_add_fetch(&control->full_wait_ns, waited_ns, __ATOMIC_RELAXED);
        step_ns = step_ns * 2 > LONGEST_STEP_NS ? LONGEST_STEP_NS : step_ns * 2;
    }
}

/* A pool smaller than what a monitor is started for has none yet. One that was just started has its time to come, and so
   has `interpose run`, which has not seen yet that its program records: no sign was given ever. */
static void call_monitor(struct control *control)
{
    uint64_t now_ns = clock_ns(CLOCK_MONOTONIC), called_ns = __atomic_load_n(&room.called_ns, __ATOMIC_RELAXED);
    if (monitor_lives(control) || now_ns < called_ns + MONITOR_SILENT_NS ||
        !__atomic_compare_exchange_n(&room.called_ns, &called_ns, now_ns, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        return;
    int failed = monitor_start(session.founder);
    if (failed == 0 || (failed == EBUSY && control->monitor_ns == 0))
        __atomic_store_n(&control->monitor_ns, now_ns, __ATOMIC_RELAXED);
}

/* Has room been made? */
static bool wait_for_room(struct control *control)
{
    call_monitor(control);
    wait_for_monitor(control);
    return !pool_is_full(control);
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
    bool grows = pool_grows(&room.pool) && take_room(control);
    if (!grows && pool_grows(&room.pool) && !pool_settle(&room.pool))
        return EDQUOT;
    struct block_begun begun = begun_now(thread);
    int failed = pool_drain(&room.pool, thread->block, &begun);
    if (failed && grows)
        return_room(control);
    else if (grows && !room.ring_blocks)
        room.grown_bytes += BLOCK_BYTES;
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

/* Whether it is time for a monitor, which is requested once. */
static bool wants_monitor(void)
{
    bool wanted = room.grown_bytes >= MONITOR_BYTES;
    room.grown_bytes = wanted ? 0 : room.grown_bytes;
    return wanted;
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
    return grows && room.wait_when_full && pool_is_full(control) && !limit_is_reached(control) &&
           hopes_for_room(control);
}

bool room_for_event(const struct thread *thread)
{
    const struct control *control = recorder.control;
    bool grows = thread && thread->block && is_full(thread->block) && pool_grows(&room.pool);
    return !grows || pool_may_settle(&room.pool) || (room.wait_when_full && !limit_is_reached(control)) ||
           !(pool_is_full(control) || limit_is_reached(control));
}

/* Others may take the room that was made. The lock is held, or false. */
static bool begin_with_room(struct thread *thread)
{
    bool held = exclusive_begin(), hopes = true;
    while (held && hopes && has_to_wait(thread)) {
        exclusive_end();
        hopes = wait_for_room(recorder.control);
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
    bool monitor = wants_monitor();
    exclusive_end();
    if (monitor)
        monitor_start(session.founder);
    return !failed;
}

struct event *event_room(struct thread *thread)
{
    if (session_stopped())
        return NULL;
    int saved = errno;
    struct reading begin = own_begin(thread);
    bool found = find_room(thread);
    thread_note_clock(thread, clock_read(&thread->clock));
    own_end(thread, begin);
    errno = saved;
    return found ? &thread->block->events[thread->block->head.used] : NULL;
}
