#include "core/tick_rate.h"

/* Both ends of a measurement are exact to 20 ns. */
enum { FIRST_NS = 500 * 1000, NEXT_NS = 10 * 1000 * 1000, ALIKE_PARTS = 4096 };
enum { HELD_PARTS = 1024, HELD_NS = 2000 }; /* the kernel slews its clock by 1 in 2000 at most */
enum { SLOWEST_TICK_NS = 8, TICKS_A_NS = 16 };
static const uint64_t longest_ns = 1000ull * 1000 * 1000 * 1000; /* after that a measurement begins anew */

static struct {
    uint64_t rate;          /* the last that a thread knew */
    struct tick_pair began; /* when the library was loaded */
} process;

/* Some milliseconds before the first call is recorded: the rate is then known from the beginning. */
__attribute__((constructor)) static void begin_process(void)
{
    if (!ticks_pair(&process.began))
        process.began = (struct tick_pair){0, 0};
}

void tick_rate_begin(struct tick_rate *rate)
{
    uint64_t known = __atomic_load_n(&process.rate, __ATOMIC_RELAXED);
    *rate = (struct tick_rate){.known = known, .measured = known};
    if (!known && __atomic_load_n(&process.began.ns, __ATOMIC_RELAXED))
        rate->since = process.began;
}

static bool are_alike(uint64_t one, uint64_t other)
{
    uint64_t apart = one > other ? one - other : other - one;
    return apart <= one / ALIKE_PARTS;
}

static bool are_plausible(uint64_t ns, uint64_t ticks)
{
    return ns < longest_ns && ticks > ns / SLOWEST_TICK_NS && ticks / TICKS_A_NS < ns;
}

bool tick_rate_held(uint64_t ns_a_tick, struct tick_pair from, struct tick_pair to)
{
    double ns = (double)(to.ns - from.ns), ticks = (double)(to.ticks - from.ticks);
    double counted_ns = ticks * (double)ns_a_tick / (double)(1ull << RATE_SHIFT);
    double apart_ns = counted_ns > ns ? counted_ns - ns : ns - counted_ns;
    return apart_ns <= ns / HELD_PARTS + HELD_NS;
}

void tick_rate_forget(struct tick_rate *rate)
{
    *rate = (struct tick_rate){0};
    __atomic_store_n(&process.began.ns, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&process.rate, 0, __ATOMIC_RELAXED);
}

/* A suspended machine, or one moved to another host, makes a measurement worthless: a rate that differs has to be
   measured twice. */
void tick_rate_note(struct tick_rate *rate, struct tick_pair now)
{
    uint64_t ns = now.ns - rate->since.ns, ticks = now.ticks - rate->since.ticks;
    if (rate->since.ns && ns < (rate->known ? NEXT_NS : FIRST_NS))
        return;
    bool begins = !rate->since.ns || !are_plausible(ns, ticks);
    rate->since = now;
    if (begins)
        return;
    uint64_t measured = (uint64_t)((double)ns / (double)ticks * (double)(1ull << RATE_SHIFT));
    if (!rate->known || are_alike(measured, rate->known) || are_alike(measured, rate->measured)) {
        rate->known = measured;
        __atomic_store_n(&process.rate, measured, __ATOMIC_RELAXED);
    }
    rate->measured = measured;
}
