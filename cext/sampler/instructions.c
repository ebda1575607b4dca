#define _GNU_SOURCE
#include "sampler/instructions.h"

#include <linux/perf_event.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

enum { NOTES_BYTES = 4096 }; /* behind the kernel's page about them; a power of two */

/* The shortest that the kernel takes, and longer than anybody lives. */
static const uint64_t AN_INSTANT_NS = 10000, NEVER_NS = 1ull << 60;

/* As it was ordered (PERF_SAMPLE_IP). */
struct note {
    struct perf_event_header head;
    uint64_t address;
};

struct instructions instructions_begin(int clock)
{
    size_t bytes = (size_t)sysconf(_SC_PAGESIZE) + NOTES_BYTES;
    void *notes = clock < 0 ? MAP_FAILED : mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, clock, 0);
    return (struct instructions){notes == MAP_FAILED ? NULL : notes};
}

void instructions_end(struct instructions instructions)
{
    if (instructions.notes)
        munmap(instructions.notes, (size_t)sysconf(_SC_PAGESIZE) + NOTES_BYTES);
}

static void set_period(int clock, uint64_t cpu_ns)
{
    ioctl(clock, PERF_EVENT_IOC_PERIOD, &cpu_ns);
}

void instructions_order(struct instructions instructions, int clock)
{
    if (instructions.notes)
        set_period(clock, AN_INSTANT_NS);
}

/* Notes follow each other, and the last may go on at the beginning. */
static void copy_notes(const struct perf_event_mmap_page *notes, uint64_t from, void *into, size_t bytes)
{
    const char *first = (const char *)notes + sysconf(_SC_PAGESIZE);
    size_t place = from % NOTES_BYTES, left = NOTES_BYTES - place;
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
    *address = is_found ? note.address : 0;
    __atomic_store_n(&notes->data_tail, end, __ATOMIC_RELEASE);
    return is_found;
}

bool instructions_take(struct instructions instructions, int clock, uint64_t *address)
{
    if (!instructions.notes)
        return false;
    set_period(clock, NEVER_NS);
    return first_note(instructions.notes, address);
}
