#define _GNU_SOURCE
#include "heap/heap.h"

#include <errno.h>
#include <math.h>
#include <string.h>
#include <sys/mman.h>

#include "core/exclusive.h"
#include "core/file.h"
#include "core/intern.h"
#include "core/wiped.h"

/* Distinct stacks; later ones count as unknown. */
enum { SITES_MOST = 1 << 16, LIVE_FIRST = 1 << 12 };
/* No distance to a sample is as long, with the largest of settings. */
static const int64_t ABOVE_ALL_DISTANCES = 1ll << 40;
/* Samples that are live at once: 128 MiB. */
#define LIVE_MOST (4u << 20)

struct heap heap;
__thread int64_t heap_left __attribute__((tls_model("initial-exec")));
static __thread uint64_t drawn __attribute__((tls_model("initial-exec"))); /* the last random number; 0: none yet */
static __thread int64_t drawn_below __attribute__((tls_model("initial-exec"))); /* heap.below as it was then */

struct live {
    uintptr_t address; /* 0: free */
    struct heap_weight weight;
    struct heap_site *site;
};

static struct {
    uint32_t *ours; /* in memory that a forked child finds zeroed: the files are this process's */
    struct series totals, sites;
    struct heap_total *total;
    struct heap_site *unknown; /* for stacks that are not distinct */
    struct {
        uint32_t stack;
        struct heap_site *site;
    } *of_stack; /* by stack */
    uint32_t site_count;
    struct live *live; /* by address */
    uint64_t room, count;
} own;

/* --- drawing */

static uint64_t next_random(void)
{
    uint64_t state = drawn ? drawn : hash_mix((uintptr_t)&drawn, clock_ns(CLOCK_MONOTONIC)) | 1;
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return drawn = state;
}

/* Exponentially distributed, by which each byte is as likely as the other. */
static int64_t draw_distance(void)
{
    double chance = ((double)(next_random() >> 11) + 1) / 9007199254740993.0;
    return (int64_t)(-log(chance) * (double)heap.every_bytes);
}

/* A thread draws again in each recording: the last one may have had another size. */
static bool is_drawn(size_t bytes)
{
    if (drawn_below != heap.below)
        heap_left = heap.below + draw_distance() - (int64_t)bytes;
    drawn_below = heap.below;
    if (heap_left >= heap.below)
        return false;
    heap_left = heap.below + draw_distance();
    return true;
}

struct heap_weight heap_draw(size_t bytes)
{
    if (!heap.every_bytes)
        return (struct heap_weight){bytes, heap.on};
    if (!is_drawn(bytes) || !heap.on)
        return (struct heap_weight){0};
    double chance = -expm1(-(double)bytes / (double)heap.every_bytes);
    if (chance <= 0)
        return (struct heap_weight){0};
    return (struct heap_weight){(uint64_t)((double)bytes / chance + 0.5), (uint32_t)(1 / chance + 0.5)};
}

/* --- samples by address */

static void *new_memory(size_t bytes)
{
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return memory == MAP_FAILED ? NULL : memory;
}

static uint64_t place_of_address(uintptr_t address)
{
    return hash_mix(address, 0) & (own.room - 1);
}

/* Where it is, or would be. */
static struct live *find_live(uintptr_t address)
{
    uint64_t place = place_of_address(address);
    while (own.live[place].address && own.live[place].address != address)
        place = (place + 1) & (own.room - 1);
    return &own.live[place];
}

static bool make_room(void)
{
    struct live *before = own.live;
    uint64_t room = own.room;
    struct live *live = room < LIVE_MOST ? new_memory(2 * room * sizeof *live) : NULL;
    if (!live)
        return own.count < room - room / 8;
    own.live = live;
    own.room = 2 * room;
    for (uint64_t place = 0; place < room; place++)
        if (before[place].address)
            *find_live(before[place].address) = before[place];
    munmap(before, room * sizeof *before);
    return true;
}

/* Entries that were displaced by it move up. */
static void remove_live(struct live *gone)
{
    uint64_t hole = (uint64_t)(gone - own.live), mask = own.room - 1;
    for (uint64_t place = (hole + 1) & mask; own.live[place].address; place = (place + 1) & mask) {
        uint64_t wanted = place_of_address(own.live[place].address);
        if (((place - wanted) & mask) >= ((place - hole) & mask)) {
            own.live[hole] = own.live[place];
            hole = place;
        }
    }
    own.live[hole].address = 0;
    own.count--;
}

static void count_in_filter(uintptr_t address, int change)
{
    uint8_t *filter = heap_filter_of(address);
    if (*filter < HEAP_FILTER_MOST)
        __atomic_store_n(filter, (uint8_t)(*filter + change), __ATOMIC_RELAXED);
}

/* --- allocations of a stack */

static struct heap_site *new_site(uint32_t stack)
{
    void *record = NULL;
    if (!series_records(&own.sites, 1, &record))
        return NULL;
    struct heap_site *site = record;
    site->stack = stack;
    __atomic_store_n(&site->used, 1, __ATOMIC_RELEASE);
    return site;
}

static struct heap_site *site_of(uint32_t stack)
{
    uint32_t place = (uint32_t)hash_mix(stack, 0) % (2 * SITES_MOST);
    while (own.of_stack[place].site && own.of_stack[place].stack != stack)
        place = (place + 1) % (2 * SITES_MOST);
    if (own.of_stack[place].site || !stack || own.site_count == SITES_MOST)
        return own.of_stack[place].site ? own.of_stack[place].site : own.unknown;
    struct heap_site *site = new_site(stack);
    if (!site)
        return own.unknown;
    own.of_stack[place].stack = stack;
    own.of_stack[place].site = site;
    own.site_count++;
    return site;
}

/* Its memory is about to change: keep what was in use at the last peak. */
static void keep_peak(struct heap_site *site)
{
    if (site->peaks == own.total->peaks)
        return;
    site->peak_bytes = site->bytes - site->freed_bytes;
    site->peaks = own.total->peaks;
}

static void count_allocated(struct heap_site *site, struct heap_weight weight)
{
    uint64_t now_ns = clock_ns(CLOCK_MONOTONIC_COARSE);
    keep_peak(site);
    site->bytes += weight.bytes;
    site->allocations += weight.allocations;
    site->last_ns = now_ns;
    own.total->live_bytes += weight.bytes;
    if (own.total->live_bytes <= own.total->peak_bytes)
        return;
    own.total->peak_bytes = own.total->live_bytes;
    own.total->peak_ns = now_ns;
    own.total->peaks++;
}

static void count_freed(struct heap_site *site, struct heap_weight weight)
{
    keep_peak(site);
    site->freed_bytes += weight.bytes;
    site->frees += weight.allocations;
    own.total->live_bytes -= weight.bytes;
}

/* --- the files */

static int create_files(void)
{
    void *record = NULL;
    int failed = recorder_series(&own.totals, DATA_HEAP);
    failed = failed ? failed : recorder_series(&own.sites, DATA_HEAP_SITES);
    if (failed)
        return failed;
    if (!series_records(&own.totals, 1, &record) || !(own.unknown = new_site(0)))
        return errno ? errno : ENOSPC;
    own.total = record;
    own.total->every_bytes = heap.every_bytes;
    __atomic_store_n(&own.total->start_ns, clock_ns(CLOCK_MONOTONIC), __ATOMIC_RELEASE);
    return 0;
}

/* Nothing is known: at the beginning, and in a forked child, which frees what its parent allocated. */
static int begin_empty(void)
{
    size_t stacks_bytes = 2 * SITES_MOST * sizeof *own.of_stack;
    if (*own.ours && own.live) /* a child's may have been forked in the midst of a change */
        munmap(own.live, own.room * sizeof *own.live);
    if (*own.ours && own.of_stack)
        munmap(own.of_stack, stacks_bytes);
    drawn = 0; /* siblings draw differently */
    own.room = LIVE_FIRST;
    own.count = own.site_count = 0;
    own.live = new_memory(own.room * sizeof *own.live);
    own.of_stack = new_memory(stacks_bytes);
    memset(heap.filter, 0, sizeof heap.filter);
    return own.live && own.of_stack ? 0 : ENOMEM;
}

static int begin_here(void)
{
    int failed = recorder_directory() ? begin_empty() : ESRCH;
    failed = failed ? failed : create_files();
    *own.ours = !failed;
    return failed;
}

/* The exclusive lock is held, and the files are this process's; false where neither is. In a forked child they are begun with
   its first sample. */
static bool begin_change(bool is_first)
{
    if (!heap.on || !(*own.ours || is_first) || !exclusive_begin())
        return false;
    if (heap.on && (*own.ours || (is_first && !begin_here())))
        return true;
    exclusive_end();
    return false;
}

static void recording_ends(void)
{
    if (!heap.on)
        return;
    heap.on = 0;
    if (*own.ours)
        own.total->end_ns = clock_ns(CLOCK_MONOTONIC);
}

int heap_begin(uint64_t every_bytes)
{
    if (heap.on || !exclusive_begin())
        return EBUSY;
    own.ours = own.ours ? own.ours : wiped_take(sizeof *own.ours);
    heap.every_bytes = every_bytes;
    heap.below += ABOVE_ALL_DISTANCES;
    int failed = own.ours ? begin_here() : ENOMEM;
    heap.on = !failed;
    exclusive_end();
    recorder.before_end[END_HEAP] = recording_ends;
    return failed;
}

/* --- samples */

/* One that is still there was freed in a way that nobody saw. */
static void forget(struct live *sample)
{
    count_freed(sample->site, sample->weight);
    count_in_filter(sample->address, -1);
    remove_live(sample);
}

static void keep(uintptr_t address, struct heap_weight weight, struct heap_site *site)
{
    *find_live(address) = (struct live){address, weight, site};
    own.count++;
    count_in_filter(address, 1);
}

void heap_add(uintptr_t address, struct heap_weight weight, uint32_t stack)
{
    int saved = errno;
    if (begin_change(true)) {
        struct live *there = find_live(address);
        if (there->address)
            forget(there);
        own.total->samples++;
        if (own.count < own.room / 2 || make_room()) {
            struct heap_site *site = site_of(stack);
            count_allocated(site, weight);
            keep(address, weight, site);
        } else {
            own.total->left_out++;
        }
        exclusive_end();
    }
    errno = saved;
}

struct heap_sample heap_take(uintptr_t address)
{
    int saved = errno;
    struct heap_sample sample = {0};
    if (begin_change(false)) {
        struct live *there = find_live(address);
        if (there->address) {
            sample = (struct heap_sample){address, there->weight, there->site};
            forget(there);
        }
        exclusive_end();
    }
    errno = saved;
    return sample;
}

void heap_put_back(const struct heap_sample *sample)
{
    int saved = errno;
    if (begin_change(false)) {
        count_allocated(sample->site, sample->weight);
        sample->site->allocations -= sample->weight.allocations;
        sample->site->frees -= sample->weight.allocations;
        sample->site->bytes -= sample->weight.bytes;
        sample->site->freed_bytes -= sample->weight.bytes;
        keep(sample->address, sample->weight, sample->site);
        exclusive_end();
    }
    errno = saved;
}
