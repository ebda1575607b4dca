/* Waiting for room, where the user chose so: no lock is held meanwhile. */
#include "core/room_wait.h"

#include <errno.h>
#include <time.h>

#include "core/clock.h"
#include "core/monitor.h"
#include "core/pool_use.h"
#include "core/session.h"

/* A monitor without a sign of life for this long is looked for; and how long to wait before checking again. */
#define MONITOR_SILENT_NS 3000000000ull
#define FIRST_STEP_NS 1000000ull
#define LONGEST_STEP_NS 1000000000ull
/* So long one that lives and makes no room (its disk is full, say) is waited for, until it makes some. */
#define LONGEST_FRUITLESS_NS 10000000000ull

static struct {
    uint64_t called_ns;                   /* when a monitor was called to make room */
    uint64_t drained_bytes, fruitless_ns; /* at the last look while waiting for room, and since when in vain */
} waiting;

void room_wait_begin(void)
{
    waiting.fruitless_ns = 0;
}

static bool monitor_lives(const struct control *control)
{
    uint64_t sign_ns = __atomic_load_n(&control->monitor_ns, __ATOMIC_RELAXED);
    return sign_ns && sign_ns + MONITOR_SILENT_NS > clock_ns(CLOCK_MONOTONIC);
}

bool room_may_come(const struct control *control)
{
    uint64_t drained = __atomic_load_n(&control->drained_bytes, __ATOMIC_RELAXED);
    if (__atomic_exchange_n(&waiting.drained_bytes, drained, __ATOMIC_RELAXED) != drained)
        __atomic_store_n(&waiting.fruitless_ns, 0, __ATOMIC_RELAXED);
    return __atomic_load_n(&waiting.fruitless_ns, __ATOMIC_RELAXED) < LONGEST_FRUITLESS_NS;
}

static void sleep_ns(uint64_t wanted_ns)
{
    struct timespec step = {(time_t)(wanted_ns / 1000000000u), (long)(wanted_ns % 1000000000u)};
    nanosleep(&step, NULL);
}

/* One that was just started has its time to come, and so has one that is watching but silent: `interpose run` before it
   sees that its program records, or a monitor that gets no processor. */
void room_call_monitor(struct control *control)
{
    uint64_t now_ns = clock_ns(CLOCK_MONOTONIC), called_ns = __atomic_load_n(&waiting.called_ns, __ATOMIC_RELAXED);
    if (monitor_lives(control) || now_ns < called_ns + MONITOR_SILENT_NS ||
        !__atomic_compare_exchange_n(&waiting.called_ns, &called_ns, now_ns, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        return;
    int failed = monitor_start(session.founder);
    if (failed == 0 || failed == EBUSY)
        __atomic_store_n(&control->monitor_ns, now_ns, __ATOMIC_RELAXED);
}

static bool may_wait(struct control *control)
{
    room_call_monitor(control);
    return monitor_lives(control) && room_may_come(control);
}

static void wait_for_room(struct control *control)
{
    uint64_t step_ns = FIRST_STEP_NS;
    while (pool_is_full(control) && may_wait(control)) {
        uint64_t begin_ns = clock_ns(CLOCK_MONOTONIC);
        sleep_ns(step_ns);
        uint64_t waited_ns = clock_ns(CLOCK_MONOTONIC) - begin_ns;
        __atomic_add_fetch(&waiting.fruitless_ns, waited_ns, __ATOMIC_RELAXED);
        __atomic_add_fetch(&control->full_waits, 1, __ATOMIC_RELAXED);
        __atomic_add_fetch(&control->full_wait_ns, waited_ns, __ATOMIC_RELAXED);
        step_ns = step_ns * 2 > LONGEST_STEP_NS ? LONGEST_STEP_NS : step_ns * 2;
    }
}

bool room_wait(struct control *control)
{
    wait_for_room(control);
    return !pool_is_full(control);
}
