/* What the program allocates: sampled, and counted by the stack that it was allocated from, in mapped files. Nothing here
   knows Python.

   Each byte that is allocated is drawn with the same chance, once in `every_bytes` on average, and an allocation of which
   one is drawn is sampled. So of an allocation it is known how likely it was, and what the sample stands for: sums
   are right on the average, however large or small allocations are. A sample is known by its address until it is freed.

   Any thread may come here, with or without the interpreter's lock. */
#pragma once

#include "core/recorder.h"

/* How many bits of an address say whether it may be a sample's. */
enum { HEAP_FILTER_BITS = 16, HEAP_FILTER_MOST = 255 };

struct heap {
    uint32_t on;
    uint64_t every_bytes; /* 0: all are recorded */
    int64_t below; /* a thread with `heap_left` below it has reached its sample; another value at each beginning */
    uint8_t filter[1u << HEAP_FILTER_BITS]; /* how many samples there are; HEAP_FILTER_MOST: as many or more */
};

VISIBLE extern struct heap heap;

/* Bytes until the calling thread's next sample, and `heap.below`; if it is below that, the sample is this allocation. */
VISIBLE extern __thread int64_t heap_left __attribute__((tls_model("initial-exec")));

/* What a sample represents. */
struct heap_weight {
    uint64_t bytes;
    uint32_t allocations; /* 0: it is not to be sampled */
};

struct heap_sample {
    uintptr_t address; /* 0: it is none */
    struct heap_weight weight;
    struct heap_site *site;
};

/* A sample that was freed. */
struct heap_freed {
    struct heap_sample sample;
    uint32_t stack; /* its site's: the record may be that of another stack soon */
};

/* Sample from now on, in files of the recording's. 0 or the error's number. */
VISIBLE int heap_begin(uint64_t every_bytes);

/* heap_left is below 0: what this allocation represents. The thread's next sample is drawn. */
VISIBLE struct heap_weight heap_draw(size_t bytes);

/* The allocation at `address` is a sample, from that stack. */
VISIBLE void heap_add(uintptr_t address, struct heap_weight weight, uint32_t stack);

/* The memory at `address` is being freed. */
VISIBLE struct heap_freed heap_take(uintptr_t address);

/* It was not freed. */
VISIBLE void heap_put_back(const struct heap_freed *freed);

static inline uint8_t *heap_filter_of(uintptr_t address)
{
    return &heap.filter[(uint64_t)(address >> 4) * 0x9e3779b97f4a7c15u >> (64 - HEAP_FILTER_BITS)];
}

static inline bool heap_may_have(const void *address)
{
    return UNLIKELY(__atomic_load_n(heap_filter_of((uintptr_t)address), __ATOMIC_RELAXED));
}
