/* Wall and CPU time of the calling thread for the price of one clock reading. While a thread is not switched out,
   its CPU time advances as its wall time does. A *witness* tells whether it was: a word that holds a mark until then.
   If the mark is gone, or the last synchronisation is older than SYNC_NS (time stolen by a hypervisor leaves no trace
   in any witness), the kernel is asked.

   The wall time since the last synchronisation is counted in ticks: of the processor's counter, if the kernel keeps its
   time by that too, which is then read at less than half the price; else of the monotonic clock. As a thread
   stays on one processor meanwhile, and a millisecond is short, an error of the rate of ticks makes one of a few
   nanoseconds, and does not add up. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "core/tick_rate.h"
#include "core/visible.h"

enum { SYNC_NS = 1000 * 1000 };

/* Tsc is rseq with the processor's counter; the others read the monotonic clock. */
enum clock_kind { CLOCK_AUTO, CLOCK_RSEQ, CLOCK_PERF, CLOCK_SYSCALL, CLOCK_TSC, CLOCK_KINDS };

struct reading {
    uint64_t wall_ns;
    uint64_t cpu_ns;
};

/* One thread's clock; read by that thread alone. */
struct clock {
    volatile uint64_t *word; /* the witness */
    volatile uint64_t mark;  /* what it holds since the last synchronisation, if the thread stayed on its processor */
    uint64_t sync_ticks;
    uint64_t sync_ns; /* of the monotonic clock */
    uint64_t sync_wall_ns;
    uint64_t sync_cpu_ns;
    uint64_t ns_a_tick;    /* times 2 to the power of RATE_SHIFT */
    uint64_t sure_ticks;   /* SYNC_NS in ticks */
    uint64_t last_wall_ns; /* a reading never goes back */
    uint64_t last_cpu_ns;
    volatile uint32_t generation;
    uint32_t kind;
    uint32_t counts; /* ticks are of the processor's counter */
    struct tick_rate rate;
    uint64_t syncs;
    uint64_t behind_ns; /* sum of what synchronisations lay behind the reading before them */
    uint64_t descriptor;
    void *page;
    uint64_t review_syncs; /* at the last look at how much the witness is worth */
    uint64_t review_switches;
    uint64_t review_wall_ns;
};

/* Begin reading on the calling thread with a witness of this kind, or the next one that works. The clock is zeroed,
   or one that this thread, in this process, has begun before. */
VISIBLE void clock_begin(struct clock *clock, enum clock_kind kind);

/* Before clock_begin: for a clock on a thread that the recorder reads too. False when there are too many of them. */
VISIBLE bool clock_set_apart(struct clock *clock);

/* Give back what the witness holds. The mark may stay in the thread's rseq area: its descriptor stays mapped. */
VISIBLE void clock_end(struct clock *clock);

/* The same for a clock that no thread reads any more, although its own may just be reading or ending it: the memory
   of the witness stays, empty, until then. */
VISIBLE void clock_release(struct clock *clock);

/* Ask the kernel and set the mark again. errno is kept. */
VISIBLE struct reading clock_sync(struct clock *clock);

/* The first kind that passes its test in this process, or the requested one if it works; and why, in words. */
VISIBLE enum clock_kind clock_choose(enum clock_kind wanted, const char **why);

VISIBLE const char *clock_kind_name(enum clock_kind kind);

/* What is tried where this kind does not work. */
enum clock_kind clock_kind_after(enum clock_kind kind);

static inline struct reading clock_read(struct clock *clock)
{
    struct reading now;
    uint32_t generation = clock->generation;
    atomic_signal_fence(memory_order_seq_cst);
    uint64_t since_ticks = (LIKELY(clock->counts) ? ticks_counter() : clock_ns(CLOCK_MONOTONIC)) - clock->sync_ticks;
    uint64_t since_ns = since_ticks * clock->ns_a_tick >> RATE_SHIFT;
    now.wall_ns = clock->sync_wall_ns + since_ns;
    now.cpu_ns = clock->sync_cpu_ns + since_ns;
    atomic_signal_fence(memory_order_seq_cst);
    if (UNLIKELY(*clock->word != clock->mark || since_ticks >= clock->sure_ticks || clock->generation != generation))
        return clock_sync(clock);
    if (now.cpu_ns < clock->last_cpu_ns)
        now.cpu_ns = clock->last_cpu_ns;
    clock->last_cpu_ns = now.cpu_ns;
    clock->last_wall_ns = now.wall_ns;
    return now;
}
