#define _GNU_SOURCE
#include "heap/heap_sites.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "core/intern.h"
#include "core/series.h"
#include "heap/heap_live.h"

/* A sweep visits all records. If fewer than one in WORTH_PARTS give way, the next sweep waits for that many new stacks. */
enum { ROOM_FIRST = 1 << 12, WORTH_PARTS = 8 };

uint32_t heap_sites_most = 1u << 21; /* 128 MiB, and 64 MiB to find them */

struct entry {
    uint32_t stack;
    struct heap_site *site; /* NULL: free */
};

static struct {
    struct series series;
    struct heap_site *unknown; /* no stack */
    struct heap_site *more;
    struct entry *entries; /* by stack */
    uint32_t room, count;
    struct heap_site **spare; /* records that are not in use */
    uint32_t spare_room, spare_count;
    uint32_t until_sweep; /* new stacks that are not kept before the next one */
} sites;

static void give_back(void *memory, size_t bytes)
{
    if (memory)
        munmap(memory, bytes);
}

bool heap_sites_begin(bool is_ours)
{
    if (is_ours) { /* a child's may have been forked in the midst of a change */
        give_back(sites.entries, sites.room * sizeof *sites.entries);
        give_back(sites.spare, sites.spare_room * sizeof *sites.spare);
    }
    memset(&sites, 0, sizeof sites);
    sites.room = ROOM_FIRST;
    sites.entries = heap_memory(sites.room * sizeof *sites.entries);
    return sites.entries;
}

/* --- records */

static void begin_record(struct heap_site *site, uint32_t stack, enum heap_site_use use)
{
    site->stack = stack;
    __atomic_store_n(&site->used, use, __ATOMIC_RELEASE);
}

static struct heap_site *new_site(uint32_t stack, enum heap_site_use use)
{
    void *record = sites.spare_count ? sites.spare[--sites.spare_count] : NULL;
    int saved = errno;
    if (!record && !series_records(&sites.series, 1, &record)) {
        errno = saved;
        return NULL;
    }
    begin_record(record, stack, use);
    return record;
}

int heap_sites_create(void)
{
    int failed = recorder_series(&sites.series, DATA_HEAP_SITES);
    if (failed)
        return failed;
    sites.unknown = new_site(0, HEAP_SITE_USED);
    sites.more = new_site(0, HEAP_SITE_MORE);
    return sites.unknown && sites.more ? 0 : ENOSPC;
}

struct heap_site *heap_site_more(void)
{
    return sites.more;
}

/* --- by stack */

static struct entry *entry_of(uint32_t stack)
{
    uint32_t mask = sites.room - 1, place = (uint32_t)hash_mix(stack, 0) & mask;
    while (sites.entries[place].site && sites.entries[place].stack != stack)
        place = (place + 1) & mask;
    return &sites.entries[place];
}

static bool make_room(void)
{
    struct entry *before = sites.entries;
    uint32_t room = sites.room;
    if (sites.count < room / 2)
        return true;
    struct entry *larger = heap_memory(2 * (size_t)room * sizeof *larger);
    if (!larger)
        return false;
    sites.entries = larger;
    sites.room = 2 * room;
    for (uint32_t place = 0; place < room; place++)
        if (before[place].site)
            *entry_of(before[place].stack) = before[place];
    give_back(before, room * sizeof *before);
    return true;
}

/* --- those that give way */

static bool may_give_way(const struct heap_site *site, uint64_t peaks)
{
    return site->bytes == site->freed_bytes && site->allocations == site->frees &&
           !(site->peaks == peaks && site->peak_bytes);
}

/* A reader sees it in one of the two records, or in both for a moment. */
static void move_to_more(struct heap_site *site)
{
    sites.more->bytes += site->bytes;
    sites.more->freed_bytes += site->freed_bytes;
    sites.more->allocations += site->allocations;
    sites.more->frees += site->frees;
    __atomic_store_n(&site->used, 0, __ATOMIC_RELEASE);
    memset(site, 0, sizeof *site);
    sites.spare[sites.spare_count++] = site;
}

static bool has_room_for_spare(void)
{
    if (sites.spare && sites.spare_room >= sites.count + sites.spare_count)
        return true;
    give_back(sites.spare, sites.spare_room * sizeof *sites.spare);
    sites.spare_count = 0; /* there was none left, or no record would have been added */
    sites.spare_room = sites.count;
    sites.spare = heap_memory(sites.spare_room * sizeof *sites.spare);
    return sites.spare;
}

/* The entries that stay go into a new table, because removed ones may have displaced them in the old one. */
static void sweep(uint64_t peaks)
{
    struct entry *before = sites.entries, *after = heap_memory(sites.room * sizeof *after);
    if (!after || !has_room_for_spare()) {
        give_back(after, sites.room * sizeof *after);
        return;
    }
    uint32_t spare_before = sites.spare_count;
    sites.entries = after;
    for (uint32_t place = 0; place < sites.room; place++) {
        if (!before[place].site)
            continue;
        if (may_give_way(before[place].site, peaks))
            move_to_more(before[place].site);
        else
            *entry_of(before[place].stack) = before[place];
    }
    sites.count -= sites.spare_count - spare_before;
    give_back(before, sites.room * sizeof *before);
}

static bool has_room(uint64_t peaks)
{
    if (sites.count < heap_sites_most)
        return true;
    if (sites.until_sweep) {
        sites.until_sweep--;
        return false;
    }
    uint32_t worth = heap_sites_most / WORTH_PARTS;
    sweep(peaks);
    sites.until_sweep = sites.count > heap_sites_most - worth ? worth : 0;
    return sites.count < heap_sites_most;
}

struct heap_site *heap_site_of(uint32_t stack, uint64_t peaks)
{
    struct heap_site *known = stack ? entry_of(stack)->site : sites.unknown;
    if (known)
        return known;
    struct heap_site *site = has_room(peaks) && make_room() ? new_site(stack, HEAP_SITE_USED) : NULL;
    if (!site)
        return sites.more;
    *entry_of(stack) = (struct entry){stack, site};
    sites.count++;
    return site;
}
