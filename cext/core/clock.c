/* Reading the clock: both times from one reading, as long as the witness says that the thread was not switched out. */
#define _GNU_SOURCE
#include "core/clock.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/clock_witness.h"

enum { NO_MARK = 1, REVIEW_SYNCS = 4096 };

/* A word that never holds a mark. */
static volatile uint64_t nothing;

static bool syscall_begin(struct clock *clock)
{
    clock->word = &nothing;
    return true;
}

static bool tsc_begin(struct clock *clock)
{
    ticks_choose();
    return ticks_are_counted && witness_rseq_begin(clock);
}

/* How each begins, and which is tried where it cannot. */
static const struct {
    const char *name;
    bool (*begin)(struct clock *);
    enum clock_kind next;
} kinds[CLOCK_KINDS] = {
    [CLOCK_AUTO] = {"auto", NULL, CLOCK_TSC},
    [CLOCK_TSC] = {"tsc", tsc_begin, CLOCK_RSEQ},
    [CLOCK_RSEQ] = {"rseq", witness_rseq_begin, CLOCK_PERF},
    [CLOCK_PERF] = {"perf", witness_perf_begin, CLOCK_SYSCALL},
    [CLOCK_SYSCALL] = {"syscall", syscall_begin, CLOCK_SYSCALL},
};

const char *clock_kind_name(enum clock_kind kind)
{
    return kind < CLOCK_KINDS ? kinds[kind].name : "?";
}

enum clock_kind clock_kind_after(enum clock_kind kind)
{
    return kinds[kind].next;
}

void clock_end(struct clock *clock)
{
    void *page = __atomic_exchange_n(&clock->page, NULL, __ATOMIC_ACQ_REL);
    clock->word = &nothing;
    clock->mark = NO_MARK;
    if (page)
        munmap(page, (size_t)sysconf(_SC_PAGESIZE));
}

void clock_release(struct clock *clock)
{
    const int how = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED;
    void *page = __atomic_exchange_n(&clock->page, NULL, __ATOMIC_ACQ_REL);
    if (page && mmap(page, (size_t)sysconf(_SC_PAGESIZE), PROT_READ, how, -1, 0) == page)
        __atomic_store_n(&clock->page, page, __ATOMIC_RELEASE);
}

void clock_begin(struct clock *clock, enum clock_kind kind)
{
    uint64_t descriptor = clock->descriptor;
    int saved = errno;
    clock_end(clock);
    memset(clock, 0, sizeof *clock);
    clock->descriptor = descriptor;
    clock->mark = NO_MARK;
    tick_rate_begin(&clock->rate);
    for (kind = kind == CLOCK_AUTO ? CLOCK_TSC : kind; !kinds[kind].begin(clock); kind = kinds[kind].next) {
    }
    clock->kind = kind;
    clock->review_switches = witness_switches();
    clock->review_wall_ns = clock_ns(CLOCK_MONOTONIC);
    clock_sync(clock);
    errno = saved;
}

/* If somebody else owns the rseq field, the mark is gone at every reading although the thread was not switched out;
   the next witness is then used. */
static void review_witness(struct clock *clock)
{
    uint64_t now_ns = clock_ns(CLOCK_MONOTONIC), now_switches = witness_switches();
    uint64_t explained = now_switches - clock->review_switches + (now_ns - clock->review_wall_ns) / SYNC_NS;
    if (explained < REVIEW_SYNCS / 2) {
        uint64_t syncs = clock->syncs, behind_ns = clock->behind_ns, last_cpu_ns = clock->last_cpu_ns;
        uint64_t last_wall_ns = clock->last_wall_ns;
        clock_begin(clock, clock->kind == CLOCK_PERF ? CLOCK_SYSCALL : CLOCK_PERF);
        if (clock->sync_wall_ns < last_wall_ns)
            clock->sync_wall_ns = clock->last_wall_ns = last_wall_ns;
        clock->syncs += syncs;
        clock->behind_ns += behind_ns;
        if (clock->last_cpu_ns < last_cpu_ns)
            clock->last_cpu_ns = last_cpu_ns;
        return;
    }
    clock->review_switches = now_switches;
    clock->review_wall_ns = now_ns;
}

static void set_mark(struct clock *clock)
{
    if (clock->kind == CLOCK_RSEQ || clock->kind == CLOCK_TSC)
        *clock->word = clock->descriptor;
}

static uint64_t expected_mark(struct clock *clock)
{
    switch (clock->kind) {
    case CLOCK_TSC:
    case CLOCK_RSEQ:
        return clock->descriptor;
    case CLOCK_PERF:
        return *clock->word;
    default:
        return NO_MARK;
    }
}

/* Where the counter is not used, the monotonic clock stands for both. It is given up where it cannot be read close to
   that: the kernel may find out that it runs unevenly, and keep its time by another device. */
static struct tick_pair read_pair(struct clock *clock)
{
    struct tick_pair now;
    if (clock->kind == CLOCK_TSC && !ticks_pair(&now))
        clock->kind = CLOCK_RSEQ;
    if (clock->kind != CLOCK_TSC)
        now.ticks = now.ns = clock_ns(CLOCK_MONOTONIC);
    return now;
}

/* From here on ticks are counted. If the last reading was ahead, wall time goes on from it: it is less than what asking
   for the CPU time takes, so being ahead does not last. */
static void begin_ticks(struct clock *clock, struct tick_pair now)
{
    if (clock->counts && !tick_rate_held(clock->ns_a_tick, (struct tick_pair){clock->sync_ticks, clock->sync_ns}, now))
        tick_rate_forget(&clock->rate);
    clock->counts = clock->kind == CLOCK_TSC && clock->rate.known;
    clock->ns_a_tick = clock->counts ? clock->rate.known : 1ull << RATE_SHIFT;
    clock->sure_ticks = (uint64_t)((double)SYNC_NS * (1ull << RATE_SHIFT) / (double)clock->ns_a_tick);
    clock->sync_ticks = clock->counts ? now.ticks : now.ns;
    clock->sync_ns = now.ns;
    clock->sync_wall_ns = now.ns > clock->last_wall_ns ? now.ns : clock->last_wall_ns;
}

/* The C library would ask the kernel in the vdso. A thread often loses its processor as it asks for its CPU time, so a profiler
   would then find it in the vdso, as if the program had called that; here it is in our own code. */
static uint64_t thread_cpu_ns(void)
{
#if defined(__x86_64__)
    struct timespec now;
    long done;
    __asm__ volatile("syscall"
                     : "=a"(done)
                     : "0"((long)SYS_clock_gettime), "D"((long)CLOCK_THREAD_CPUTIME_ID), "S"(&now)
                     : "rcx", "r11", "memory");
    return done ? clock_ns(CLOCK_THREAD_CPUTIME_ID) : (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
#elif defined(__aarch64__)
    struct timespec now;
    register long call __asm__("x8") = SYS_clock_gettime;
    register long done __asm__("x0") = CLOCK_THREAD_CPUTIME_ID;
    register struct timespec *into __asm__("x1") = &now;
    __asm__ volatile("svc #0" : "+r"(done) : "r"(call), "r"(into) : "memory");
    return done ? clock_ns(CLOCK_THREAD_CPUTIME_ID) : (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
#else
    return clock_ns(CLOCK_THREAD_CPUTIME_ID);
#endif
}

/* The pair is whole when neither a switch nor a reading in a signal handler came between its two halves. */
static bool take_pair(struct clock *clock)
{
    uint32_t generation = clock->generation + 1;
    clock->generation = generation;
    clock->mark = NO_MARK;
    set_mark(clock);
    uint64_t mark = expected_mark(clock);
    atomic_signal_fence(memory_order_seq_cst);
    uint64_t cpu_ns = thread_cpu_ns();
    struct tick_pair now = read_pair(clock);
    clock->sync_cpu_ns = cpu_ns;
    begin_ticks(clock, now);
    atomic_signal_fence(memory_order_seq_cst);
    if (clock->generation != generation) {
        clock->mark = NO_MARK; /* that of the handler's synchronisation, which this one has overwritten */
        return false;
    }
    clock->mark = mark;
    if (clock->kind != CLOCK_SYSCALL && *clock->word != mark)
        return false;
    if (clock->kind == CLOCK_TSC)
        tick_rate_note(&clock->rate, now);
    return true;
}

struct reading clock_sync(struct clock *clock)
{
    int saved = errno;
    for (int tries = 0; tries < 8 && !take_pair(clock); tries++) {
    }
    struct reading now = {clock->sync_wall_ns, clock->sync_cpu_ns};
    if (now.cpu_ns < clock->last_cpu_ns) {
        clock->behind_ns += clock->last_cpu_ns - now.cpu_ns;
        now.cpu_ns = clock->last_cpu_ns;
    }
    clock->last_wall_ns = now.wall_ns;
    clock->last_cpu_ns = now.cpu_ns;
    if (++clock->syncs - clock->review_syncs >= REVIEW_SYNCS) {
        clock->review_syncs = clock->syncs;
        if (clock->kind != CLOCK_SYSCALL)
            review_witness(clock);
    }
    errno = saved;
    return now;
}
