#define _GNU_SOURCE
#include "heap/heap_live.h"

#include <sys/mman.h>

#include "core/intern.h"

enum { LIVE_FIRST = 1 << 12 };
/* Samples that are live at once: 512 MiB. */
#define LIVE_MOST (16u << 20)

static struct {
    struct heap_sample *samples; /* by address; 0: free */
    uint64_t room, count;
} table;

void *heap_memory(size_t bytes)
{
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return memory == MAP_FAILED ? NULL : memory;
}

bool heap_live_begin(bool is_ours)
{
    if (is_ours && table.samples) /* a child's may have been forked in the midst of a change */
        munmap(table.samples, table.room * sizeof *table.samples);
    table.room = LIVE_FIRST;
    table.count = 0;
    table.samples = heap_memory(table.room * sizeof *table.samples);
    return table.samples;
}

static uint64_t place_of_address(uintptr_t address)
{
    return hash_mix(address, 0) & (table.room - 1);
}

struct heap_sample *heap_live_find(uintptr_t address)
{
    uint64_t place = place_of_address(address);
    while (table.samples[place].address && table.samples[place].address != address)
        place = (place + 1) & (table.room - 1);
    return &table.samples[place];
}

static bool grow(void)
{
    struct heap_sample *before = table.samples;
    uint64_t room = table.room;
    struct heap_sample *larger = room < LIVE_MOST ? heap_memory(2 * room * sizeof *larger) : NULL;
    if (!larger)
        return table.count < room - room / 8;
    table.samples = larger;
    table.room = 2 * room;
    for (uint64_t place = 0; place < room; place++)
        if (before[place].address)
            *heap_live_find(before[place].address) = before[place];
    munmap(before, room * sizeof *before);
    return true;
}

/* Entries that were displaced by it move up. */
static void remove_sample(struct heap_sample *gone)
{
    uint64_t hole = (uint64_t)(gone - table.samples), mask = table.room - 1;
    for (uint64_t place = (hole + 1) & mask; table.samples[place].address; place = (place + 1) & mask) {
        uint64_t wanted = place_of_address(table.samples[place].address);
        if (((place - wanted) & mask) >= ((place - hole) & mask)) {
            table.samples[hole] = table.samples[place];
            hole = place;
        }
    }
    table.samples[hole].address = 0;
    table.count--;
}

static void count_in_filter(uintptr_t address, int change)
{
    uint8_t *filter = heap_filter_of(address);
    if (*filter < HEAP_FILTER_MOST)
        __atomic_store_n(filter, (uint8_t)(*filter + change), __ATOMIC_RELAXED);
}

bool heap_live_has_room(void)
{
    return table.count < table.room / 2 || grow();
}

void heap_live_keep(const struct heap_sample *sample)
{
    *heap_live_find(sample->address) = *sample;
    table.count++;
    count_in_filter(sample->address, 1);
}

void heap_live_remove(struct heap_sample *sample)
{
    count_in_filter(sample->address, -1);
    remove_sample(sample);
}
