#define _GNU_SOURCE
#include "heap/heap.h"

#include <errno.h>
#include <string.h>

#include "core/exclusive.h"
#include "core/series.h"
#include "core/wiped.h"
#include "heap/heap_draw.h"
#include "heap/heap_live.h"
#include "heap/heap_sites.h"

/* No distance to a sample is as long, with the largest of settings. */
static const int64_t ABOVE_ALL_DISTANCES = 1ll << 40;

struct heap heap;

static struct {
    uint32_t *ours; /* in memory that a forked child finds zeroed: the files are this process's */
    struct series totals;
    struct heap_total *total;
} own;

/* --- allocations of a stack */

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

/* Unless the site gave way to another one meanwhile. */
static void count_not_freed(struct heap_site *site, struct heap_weight weight)
{
    if (site->freed_bytes < weight.bytes || site->frees < weight.allocations)
        return;
    site->bytes -= weight.bytes;
    site->freed_bytes -= weight.bytes;
    site->allocations -= weight.allocations;
    site->frees -= weight.allocations;
}

/* It is not known how long it is in use. */
static void count_left_out(struct heap_weight weight)
{
    struct heap_site *more = heap_site_more();
    more->bytes += weight.bytes;
    more->freed_bytes += weight.bytes;
    more->allocations += weight.allocations;
    more->frees += weight.allocations;
}

/* --- the files */

static int create_files(void)
{
    void *record = NULL;
    int failed = recorder_series(&own.totals, DATA_HEAP);
    failed = failed ? failed : heap_sites_create();
    if (failed)
        return failed;
    if (!series_records(&own.totals, 1, &record))
        return errno ? errno : ENOSPC;
    own.total = record;
    own.total->every_bytes = heap.every_bytes;
    __atomic_store_n(&own.total->start_ns, clock_ns(CLOCK_MONOTONIC), __ATOMIC_RELEASE);
    return 0;
}

/* Nothing is known: at the beginning, and in a forked child, which frees what its parent allocated. */
static int begin_empty(void)
{
    bool has_live = heap_live_begin(*own.ours), has_sites = heap_sites_begin(*own.ours);
    heap_draw_otherwise();
    memset(heap.filter, 0, sizeof heap.filter);
    return has_live && has_sites ? 0 : ENOMEM;
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
            struct heap_site *site = heap_site_of(stack, own.total->peaks);
            count_allocated(site, weight);
            heap_live_keep(&(struct heap_sample){address, weight, site});
        } else {
            own.total->left_out++;
            count_left_out(weight);
        }
        exclusive_end();
    }
    errno = saved;
}

struct heap_freed heap_take(uintptr_t address)
{
    int saved = errno;
    struct heap_freed freed = {0};
    if (begin_change(false)) {
        struct heap_sample *there = heap_live_find(address);
        if (there->address) {
            freed = (struct heap_freed){*there, there->site->stack};
            forget(there);
        }
        exclusive_end();
    }
    errno = saved;
    return freed;
}

/* Its stack's record may have given way meanwhile, and be another one's. */
static struct heap_site *site_again(const struct heap_freed *freed)
{
    struct heap_site *site = freed->sample.site;
    return site->used && site->stack == freed->stack ? site : heap_site_more();
}

void heap_put_back(const struct heap_freed *freed)
{
    int saved = errno;
    if (begin_change(false)) {
        struct heap_sample again = freed->sample;
        again.site = site_again(freed);
        count_allocated(again.site, again.weight);
        count_not_freed(again.site, again.weight);
        heap_live_keep(&again);
        exclusive_end();
    }
    errno = saved;
}
