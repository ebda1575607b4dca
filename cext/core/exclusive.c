#define _GNU_SOURCE
#include "core/exclusive.h"

#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/wiped.h"

enum { FREE, HELD, WAITED_FOR };
enum { SPINS = 100 };
/* As long as a slow disk may take to write a block. */
static const uint64_t LONGEST_WAIT_NS = 2000000000;

static uint32_t *lock; /* never unmapped */
static __thread bool inside __attribute__((tls_model("initial-exec")));
static __thread int cancel_state __attribute__((tls_model("initial-exec")));

int exclusive_prepare(void)
{
    if (!lock)
        lock = wiped_take(sizeof *lock);
    return lock ? 0 : errno;
}

static bool take_if_free(uint32_t as)
{
    uint32_t expected = FREE;
    return __atomic_compare_exchange_n(lock, &expected, as, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
}

static bool spin(void)
{
    for (int tries = 0; tries < SPINS; tries++)
        if (__atomic_load_n(lock, __ATOMIC_RELAXED) == FREE && take_if_free(HELD))
            return true;
    return false;
}

/* Who has waited takes it as waited for: there may be others. */
static bool wait(void)
{
    const struct timespec step = {.tv_nsec = 100 * 1000 * 1000};
    uint64_t until_ns = clock_ns(CLOCK_MONOTONIC) + LONGEST_WAIT_NS;
    while (__atomic_exchange_n(lock, WAITED_FOR, __ATOMIC_ACQUIRE) != FREE) {
        if (clock_ns(CLOCK_MONOTONIC) >= until_ns)
            return false;
        syscall(SYS_futex, lock, FUTEX_WAIT_PRIVATE, WAITED_FOR, &step, NULL, 0);
    }
    return true;
}

bool exclusive_begin(void)
{
    int before;
    if (inside || !lock)
        return false;
    inside = true; /* first: a handler that interrupts from here on must not wait for its own thread */
    atomic_signal_fence(memory_order_seq_cst);
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
    if (take_if_free(HELD) || spin() || wait()) {
        cancel_state = before;
        return true;
    }
    pthread_setcancelstate(before, &before);
    inside = false;
    return false;
}

void exclusive_end(void)
{
    int before;
    if (__atomic_exchange_n(lock, FREE, __ATOMIC_RELEASE) == WAITED_FOR)
        syscall(SYS_futex, lock, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
    pthread_setcancelstate(cancel_state, &before);
    atomic_signal_fence(memory_order_seq_cst);
    inside = false;
}
