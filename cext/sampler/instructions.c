#define _GNU_SOURCE
#include "sampler/instructions.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
    THREADS_AT_MOST = 32, /* a process may have few descriptors, and locked memory */
};
static unsigned threads;

/* As it was ordered (PERF_SAMPLE_REGS_USER). */
struct note {
    struct perf_event_header head;
    uint64_t kind; /* of registers: 0: there are none */
    uint64_t address;
};

#if defined(__x86_64__)
enum { INSTRUCTION_POINTER = 8 }; /* PERF_REG_X86_IP */
#elif defined(__aarch64__)
enum { INSTRUCTION_POINTER = 32 }; /* PERF_REG_ARM64_PC */
#else
enum { INSTRUCTION_POINTER = 0 };
#endif

/* An interrupt may take tens of microseconds in a virtual machine. If each were followed by the next one while the thread is in the
   kernel, it would never leave it: a processor stood still for half a minute. */
static uint64_t period_ns(enum note_after after, bool in_kernel)
{
    const uint64_t least_ns = 100000;
    return in_kernel || after >= least_ns ? after : least_ns;
}

/* In the kernel as well, if that is permitted: then the first look is the note. Otherwise the kernel looks again and again until the
   thread has left it. */
static int open_with(uint32_t tid, bool in_kernel)
{
    struct perf_event_attr event = {
        .type = PERF_TYPE_SOFTWARE,
        .size = sizeof event,
        .config = PERF_COUNT_SW_TASK_CLOCK,
        .exclude_kernel = !in_kernel,
        .exclude_hv = 1,
        .disabled = 1,
        .sample_period = period_ns(AFTER_AN_INSTANT, in_kernel),
        .sample_type = PERF_SAMPLE_REGS_USER,
        .sample_regs_user = 1ull << INSTRUCTION_POINTER,
        .wakeup_events = 1,
    };
    return (int)syscall(SYS_perf_event_open, &event, (pid_t)tid, -1, -1, PERF_FLAG_FD_CLOEXEC);
}

static int open_event(uint32_t tid, bool *sees_kernel)
{
    int event = open_with(tid, true);
    *sees_kernel = event >= 0;
    return event < 0 && (errno == EACCES || errno == EPERM) ? open_with(tid, false) : event;
}

/* Of the notes, and of what the kernel tells about them in front. */
static size_t page_bytes(void)
{
    return (size_t)sysconf(_SC_PAGESIZE);
}

bool instructions_are_left(void)
{
    return threads < THREADS_AT_MOST;
}

struct instructions instructions_begin(uint32_t tid)
{
    struct instructions made = {.after = AFTER_AN_INSTANT};
    made.event = open_event(tid, &made.sees_kernel);
    void *notes = made.event < 0 ? MAP_FAILED : mmap(NULL, 2 * page_bytes(), PROT_READ | PROT_WRITE, MAP_SHARED, made.event, 0);
    if (notes != MAP_FAILED) {
        made.notes = notes;
        threads++;
    } else if (made.event >= 0) {
        close(made.event);
    }
    return made;
}

int instructions_try(uint32_t tid)
{
    bool sees_kernel;
    int event = open_event(tid, &sees_kernel), failed = event < 0 ? errno : 0;
    if (event >= 0)
        close(event);
    return failed;
}

void instructions_end(struct instructions *instructions)
{
    if (!instructions->notes)
        return;
    munmap(instructions->notes, 2 * page_bytes());
    close(instructions->event);
    instructions->notes = NULL;
    threads--;
}

static void choose_period(struct instructions *instructions, enum note_after after)
{
    uint64_t period = period_ns(after, instructions->sees_kernel);
    if (instructions->after != after && ioctl(instructions->event, PERF_EVENT_IOC_PERIOD, &period) == 0)
        instructions->after = after;
}

void instructions_order(struct instructions *instructions, enum note_after after)
{
    if (!instructions->notes)
        return;
    choose_period(instructions, after);
    if (!instructions->is_ordered)
        instructions->is_ordered = ioctl(instructions->event, PERF_EVENT_IOC_REFRESH, 1) == 0;
}

/* Notes follow each other, and the last may go on at the beginning. */
static void copy_notes(const struct perf_event_mmap_page *notes, uint64_t from, void *into, size_t bytes)
{
    const char *first = (const char *)notes + page_bytes();
    size_t place = from % page_bytes(), left = page_bytes() - place;
    size_t before_end = bytes < left ? bytes : left;
    memcpy(into, first + place, before_end);
    memcpy((char *)into + before_end, first, bytes - before_end);
}

static bool first_note(struct perf_event_mmap_page *notes, uint64_t *address)
{
    struct note note;
    bool is_found = false;
    uint64_t end = __atomic_load_n(&notes->data_head, __ATOMIC_ACQUIRE), from = notes->data_tail;
    while (!is_found && end - from >= sizeof note.head) {
        copy_notes(notes, from, &note.head, sizeof note.head);
        is_found = note.head.type == PERF_RECORD_SAMPLE && note.head.size == sizeof note && end - from >= sizeof note;
        if (is_found)
            copy_notes(notes, from, &note, sizeof note);
        from += note.head.size >= sizeof note.head ? note.head.size : end - from;
    }
    *address = is_found && note.kind ? note.address : 0;
    __atomic_store_n(&notes->data_tail, end, __ATOMIC_RELEASE);
    return is_found;
}

bool instructions_take(struct instructions *instructions, uint64_t *address)
{
    bool is_made = instructions->notes && first_note(instructions->notes, address);
    if (is_made)
        instructions->is_ordered = false;
    return is_made;
}
