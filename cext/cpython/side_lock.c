#include "cpython/side_lock.h"

#if IS_FREE_THREADED
#include <errno.h>
#include <stdint.h>
#include <time.h>

#include "core/clock.h"
#include "core/wiped.h"

enum { FREE, HELD, SPINS = 200 };
static const uint64_t LONGEST_WAIT_NS = 2000000000;

struct side_lock {
    uint32_t state;
} __attribute__((aligned(64)));

static struct side_lock *locks; /* never given back */

int side_locks_prepare(void)
{
    if (!locks)
        locks = wiped_take(SIDE_LOCKS * sizeof *locks);
    return locks ? 0 : errno;
}

static bool take_if_free(uint32_t *state)
{
    uint32_t expected = FREE;
    return __atomic_load_n(state, __ATOMIC_RELAXED) == FREE &&
           __atomic_compare_exchange_n(state, &expected, HELD, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
}

static bool spin(uint32_t *state)
{
    for (int tries = 0; tries < SPINS; tries++)
        if (take_if_free(state))
            return true;
    return false;
}

/* Who holds it was switched out. */
static bool wait_and_take(uint32_t *state)
{
    const struct timespec step = {.tv_nsec = 50 * 1000};
    uint64_t until_ns = clock_ns(CLOCK_MONOTONIC) + LONGEST_WAIT_NS;
    bool taken = false;
    int saved = errno;
    while (!taken && clock_ns(CLOCK_MONOTONIC) < until_ns) {
        PyThreadState *thread = PyEval_SaveThread();
        nanosleep(&step, NULL);
        PyEval_RestoreThread(thread);
        taken = spin(state);
    }
    errno = saved;
    return taken;
}

bool side_begin(unsigned lock)
{
    if (UNLIKELY(!locks))
        return false;
    uint32_t *state = &locks[lock].state;
    return take_if_free(state) || spin(state) || wait_and_take(state);
}

void side_end(unsigned lock)
{
    __atomic_store_n(&locks[lock].state, FREE, __ATOMIC_RELEASE);
}
#endif
