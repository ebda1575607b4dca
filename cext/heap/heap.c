#define _GNU_SOURCE
#include "heap/heap.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "core/exclusive.h"
#include "core/intern.h"
#include "core/series.h"
#include "core/wiped.h"
#include "heap/heap_draw.h"
#include "heap/heap_live.h"

/* Distinct stacks; later ones count as unknown. */
enum { SITES_MOST = 1 << 16 };
/* No distance to a sample is as long, with the largest of settings. */
static const int64_t ABOVE_ALL_DISTANCES = 1ll << 40;

struct heap heap;

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
} own;

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
    bool has_live = heap_live_begin(*own.ours);
    if (*own.ours && own.of_stack)
        munmap(own.of_stack, stacks_bytes);
    heap_draw_otherwise();
    own.site_count = 0;
    own.of_stack = heap_memory(stacks_bytes);
    memset(heap.filter, 0, sizeof heap.filter);
    return has_live && own.of_stack ? 0 : ENOMEM;
}

static int begin_here(void)
{
    int failed = recorder_directory() ? begin_empty() : ESRCH;
    failed = failed ? failed : create_files();
    *own.ours = !failed;
    return failed;
}

/* The exclusive lock is held, and the files are this process's; false if neither is. In a forked child they are begun with
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
static void forget(struct heap_sample *sample)
{
    count_freed(sample->site, sample->weight);
    heap_live_remove(sample);
}

void heap_add(uintptr_t address, struct heap_weight weight, uint32_t stack)
{
    int saved = errno;
    if (begin_change(true)) {
        struct heap_sample *there = heap_live_find(address);
        if (there->address)
            forget(there);
        own.total->samples++;
        if (heap_live_has_room()) {
            struct heap_site *site = site_of(stack);
            count_allocated(site, weight);
            heap_live_keep(&(struct heap_sample){address, weight, site});
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
        struct heap_sample *there = heap_live_find(address);
        if (there->address) {
            sample = *there;
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
        heap_live_keep(sample);
        exclusive_end();
    }
    errno = saved;
}
