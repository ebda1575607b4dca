#define _GNU_SOURCE
#include "heap/heap_draw.h"

#include <math.h>

#include "core/intern.h"

__thread int64_t heap_left __attribute__((tls_model("initial-exec")));
static __thread uint64_t drawn __attribute__((tls_model("initial-exec"))); /* the last random number; 0: none yet */
static __thread int64_t drawn_below __attribute__((tls_model("initial-exec"))); /* heap.below as it was then */

static uint64_t next_random(void)
{
    uint64_t state = drawn ? drawn : hash_mix((uintptr_t)&drawn, clock_ns(CLOCK_MONOTONIC)) | 1;
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return drawn = state;
}

/* Uniformly distributed: above 0, up to 1. */
static double next_fraction(void)
{
    return ((double)(next_random() >> 11) + 1) / 9007199254740993.0;
}

/* Exponentially distributed, by which each byte is as likely as the other. */
static int64_t draw_distance(void)
{
    return (int64_t)(-log(next_fraction()) * (double)heap.every_bytes);
}

/* Rounds up as often as the fraction says, so sums are right on average. Rounded to the nearest, 1.48 would always be 1. */
static uint32_t rounded(double allocations)
{
    return (uint32_t)(allocations + 1 - next_fraction());
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
    return (struct heap_weight){(uint64_t)((double)bytes / chance + 0.5), rounded(1 / chance)};
}

void heap_draw_otherwise(void)
{
    drawn = 0;
}
