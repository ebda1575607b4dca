/* The witnesses of the clock that tell whether a thread was switched out: restartable sequences, and a perf event's page. */
#define _GNU_SOURCE
#include "core/clock_witness.h"

#include <linux/perf_event.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/call_filter.h"

enum { DESCRIPTORS = 64 };

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

bool witness_rseq_begin(struct clock *clock)
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

bool witness_rseq_begin(struct clock *clock)
{
    (void)clock;
    return false;
}
#endif

/* --- a software perf event on the thread itself: the lock word of its page grows at every context switch */

bool witness_perf_begin(struct clock *clock)
{
    struct perf_event_attr attributes = {
        .type = PERF_TYPE_SOFTWARE,
        .size = sizeof attributes,
        .config = PERF_COUNT_SW_DUMMY,
        .exclude_kernel = 1,
        .exclude_hv = 1,
    };
    if (calls_are_filtered())
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

/* --- how often the calling thread was switched out, as the kernel counts it */

uint64_t witness_switches(void)
{
    struct rusage usage;
    getrusage(RUSAGE_THREAD, &usage);
    return (uint64_t)usage.ru_nvcsw + (uint64_t)usage.ru_nivcsw;
}
