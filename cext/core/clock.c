/* The witnesses of the clock: restartable sequences, a perf event's page, and none (the system call each time). */
#define _GNU_SOURCE
#include "core/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { NO_MARK = 1, DESCRIPTORS = 64, REVIEW_SYNCS = 4096 };

/* A word that never holds a mark. */
static volatile uint64_t nothing;

/* --- restartable sequences (rseq(2)): the kernel zeroes rseq_cs when it finds the thread outside of the section */

extern const ptrdiff_t __rseq_offset __attribute__((weak));
extern const unsigned int __rseq_size __attribute__((weak));

/* As in linux/rseq.h, which older systems do not have. */
struct rseq_section {
    uint32_t version, flags;
    uint64_t start_ip, post_commit_offset, abort_ip;
} __attribute__((aligned(32)));

struct rseq_area {
    uint32_t cpu_id_start, cpu_id;
    volatile uint64_t rseq_cs;
};

#if defined(__x86_64__)
#define RSEQ_SIGNATURE ".long 0x53053053"
#define NEVER_EXECUTED "ud2"
#elif defined(__aarch64__)
#define RSEQ_SIGNATURE ".inst 0xd428bc00"
#define NEVER_EXECUTED "brk 1"
#endif

#ifdef RSEQ_SIGNATURE
extern const char interpose_section_begin[], interpose_section_end[], interpose_section_abort[];
__asm__(".pushsection .text\n"
        ".balign 16\n"
        ".hidden interpose_section_begin\n.globl interpose_section_begin\ninterpose_section_begin:\n"
        "nop\nnop\nnop\n"
        ".hidden interpose_section_end\n.globl interpose_section_end\ninterpose_section_end:\n"
        "nop\n" RSEQ_SIGNATURE "\n"
        ".hidden interpose_section_abort\n.globl interpose_section_abort\ninterpose_section_abort:\n"
        NEVER_EXECUTED "\n"
        ".popsection\n");

/* The first descriptor is that of the recorder's clocks, one on each thread. Another clock on the same thread would take
   its mark for its own, so it has a descriptor of its own. The kernel may look at one at any time: none is given back. */
static struct rseq_section descriptors[DESCRIPTORS];
static atomic_uint descriptors_taken = 1;

static uint64_t descriptor(unsigned index)
{
    struct rseq_section *section = &descriptors[index];
    section->start_ip = (uintptr_t)interpose_section_begin;
    section->post_commit_offset = (uintptr_t)(interpose_section_end - interpose_section_begin);
    section->abort_ip = (uintptr_t)interpose_section_abort;
    return (uintptr_t)section;
}

bool clock_set_apart(struct clock *clock)
{
    unsigned index = atomic_fetch_add(&descriptors_taken, 1);
    if (index >= DESCRIPTORS)
        return false;
    clock->descriptor = descriptor(index);
    return true;
}

static struct rseq_area *rseq_area(void)
{
    if (!&__rseq_offset || !&__rseq_size || __rseq_size == 0)
        return NULL;
    return (struct rseq_area *)((char *)__builtin_thread_pointer() + __rseq_offset);
}

static bool rseq_begin(struct clock *clock)
{
    struct rseq_area *area = rseq_area();
    if (!area || (int32_t)area->cpu_id < 0)
        return false;
    if (!clock->descriptor)
        clock->descriptor = descriptor(0);
    clock->word = &area->rseq_cs;
    return true;
}
#else
bool clock_set_apart(struct clock *clock)
{
    (void)clock;
    return true;
}

static bool rseq_begin(struct clock *clock)
{
    (void)clock;
    return false;
}
#endif

/* --- a software perf event on the thread itself: the lock word of its page grows at every context switch */

static bool seccomp_filters_this_process(void)
{
    char status[4096];
    int file = open("/proc/self/status", O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return true;
    ssize_t got = read(file, status, sizeof status - 1);
    close(file);
    if (got <= 0)
        return true;
    status[got] = 0;
    const char *line = strstr(status, "\nSeccomp:\t");
    return line && line[10] != '0';
}

static bool perf_begin(struct clock *clock)
{
    struct perf_event_attr attributes = {
        .type = PERF_TYPE_SOFTWARE,
        .size = sizeof attributes,
        .config = PERF_COUNT_SW_DUMMY,
        .exclude_kernel = 1,
        .exclude_hv = 1,
    };
    if (seccomp_filters_this_process())
        return false;
    int file = (int)syscall(SYS_perf_event_open, &attributes, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
    if (file < 0)
        return false;
    void *page = mmap(NULL, (size_t)sysconf(_SC_PAGESIZE), PROT_READ, MAP_SHARED, file, 0);
    close(file);
    if (page == MAP_FAILED)
        return false;
    clock->page = page;
    /* `lock` and `index` side by side; the index of a software event does not change. */
    clock->word = (volatile uint64_t *)((char *)page + offsetof(struct perf_event_mmap_page, lock));
    return true;
}

static bool syscall_begin(struct clock *clock)
{
    clock->word = &nothing;
    return true;
}

/* --- reading */

static const struct {
    const char *name;
    bool (*begin)(struct clock *);
} kinds[CLOCK_KINDS] = {
    [CLOCK_AUTO] = {"auto", NULL},
    [CLOCK_RSEQ] = {"rseq", rseq_begin},
    [CLOCK_PERF] = {"perf", perf_begin},
    [CLOCK_SYSCALL] = {"syscall", syscall_begin},
};

const char *clock_kind_name(enum clock_kind kind)
{
    return kind < CLOCK_KINDS ? kinds[kind].name : "?";
}

static uint64_t switches(void)
{
    struct rusage usage;
    getrusage(RUSAGE_THREAD, &usage);
    return (uint64_t)usage.ru_nvcsw + (uint64_t)usage.ru_nivcsw;
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
    for (kind = kind == CLOCK_AUTO ? CLOCK_RSEQ : kind; !kinds[kind].begin(clock); kind++) {
    }
    clock->kind = kind;
    clock->review_switches = switches();
    clock->review_wall_ns = clock_ns(CLOCK_MONOTONIC);
    clock_sync(clock);
    errno = saved;
}

/* If somebody else owns the rseq field, the mark is gone at every reading although the thread was not switched out;
   the next witness is then used. */
static void review_witness(struct clock *clock)
{
    uint64_t now_ns = clock_ns(CLOCK_MONOTONIC), now_switches = switches();
    uint64_t explained = now_switches - clock->review_switches + (now_ns - clock->review_wall_ns) / SYNC_NS;
    if (explained < REVIEW_SYNCS / 2) {
        uint64_t syncs = clock->syncs, behind_ns = clock->behind_ns, last_cpu_ns = clock->last_cpu_ns;
        enum clock_kind next = (enum clock_kind)(clock->kind + 1);
        clock_begin(clock, next);
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
    if (clock->kind == CLOCK_RSEQ)
        *clock->word = clock->descriptor;
}

static uint64_t expected_mark(struct clock *clock)
{
    switch (clock->kind) {
    case CLOCK_RSEQ:
        return clock->descriptor;
    case CLOCK_PERF:
        return *clock->word;
    default:
        return NO_MARK;
    }
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
    uint64_t cpu_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
    uint64_t wall_ns = clock_ns(CLOCK_MONOTONIC);
    clock->sync_cpu_ns = cpu_ns;
    clock->sync_wall_ns = wall_ns;
    atomic_signal_fence(memory_order_seq_cst);
    if (clock->generation != generation)
        return false;
    clock->mark = mark;
    return clock->kind == CLOCK_SYSCALL || *clock->word == mark;
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
    clock->last_cpu_ns = now.cpu_ns;
    if (++clock->syncs - clock->review_syncs >= REVIEW_SYNCS) {
        clock->review_syncs = clock->syncs;
        if (clock->kind != CLOCK_SYSCALL)
            review_witness(clock);
    }
    errno = saved;
    return now;
}

/* --- which one */

/* The mark must be gone after a sleep in a system call. A short one may end before the thread has left its
   processor, for example if a hypervisor takes that away; so the sleep must have been counted as a switch, or be a
   long one. */
static bool tells_a_switch(struct clock *clock)
{
    struct timespec sleep = {0, 1};
    const long longest_ns = 2 * 1000 * 1000;
    uint64_t before;
    do {
        sleep.tv_nsec *= 8;
        clock_sync(clock);
        before = switches();
        nanosleep(&sleep, NULL);
    } while (switches() == before && sleep.tv_nsec < longest_ns);
    return *clock->word != clock->mark;
}

/* It must stay while the thread computes; a processor lost in between is not the witness's fault, so one try in
   several is enough. */
static bool stays_while_computing(struct clock *clock)
{
    for (int tries = 0; tries < 8; tries++) {
        uint64_t until_ns = clock_sync(clock).wall_ns + 5000;
        while (clock_ns(CLOCK_MONOTONIC) < until_ns) {
        }
        if (*clock->word == clock->mark)
            return true;
    }
    return false;
}

static const char *fault_of(enum clock_kind kind)
{
    struct clock clock = {0};
    const char *fault = NULL;
    clock_begin(&clock, kind);
    if (clock.kind != kind)
        fault = kind == CLOCK_RSEQ ? "rseq is not registered for this thread" : "no perf event for this thread";
    else if (kind != CLOCK_SYSCALL && !tells_a_switch(&clock))
        fault = "self-test: a switch went unnoticed";
    else if (kind != CLOCK_SYSCALL && !stays_while_computing(&clock))
        fault = "self-test: the mark did not stay";
    clock_end(&clock);
    return fault;
}

enum clock_kind clock_choose(enum clock_kind wanted, const char **why)
{
    const char *fault = NULL;
    int saved = errno;
    enum clock_kind kind = wanted == CLOCK_AUTO ? CLOCK_RSEQ : wanted;
    while (kind < CLOCK_SYSCALL) {
        const char *found = fault_of(kind);
        if (!found)
            break;
        fault = found;
        kind++;
    }
    errno = saved;
    *why = fault ? fault : wanted == CLOCK_AUTO ? "self-test passed" : "as set";
    return kind;
}
