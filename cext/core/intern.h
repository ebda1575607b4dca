/* Numbers for what was seen before: a cache of limited size in front of a file of records. What drops out of the
   cache gets a new number when it comes back, so memory stays bounded whatever the program does; readers compare
   contents, not numbers. It takes no lock: threads read and write at the same time, and a process may fork in the
   middle. An entry holds its key mixed with its value, so a torn entry matches no key. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "core/visible.h"

enum { CACHE_WAYS = 4, CACHE_SETS = 4096, FIRST_SETS = 256, MANY_SETS = 1 << 17 };

struct cached {
    uint64_t mixed; /* key ^ value */
    uint64_t value;
};

struct cache {
    struct cached (*sets)[CACHE_WAYS];
    uint32_t used; /* how many sets: few at first, to touch few pages of memory */
    uint32_t kept;
    uint32_t grows; /* a thread is at it */
    uint32_t most; /* sets, up to which it grows as it fills; 0: CACHE_SETS */
};

static inline struct cached *cache_set(const struct cache *cache, uint64_t key)
{
    return cache->sets[key & (__atomic_load_n(&cache->used, __ATOMIC_RELAXED) - 1)];
}

/* Mix a word into a hash. Start from a hash (hash_word): two plain numbers may give the same result as two others. */
static inline uint64_t hash_mix(uint64_t hash, uint64_t word)
{
    __extension__ typedef unsigned __int128 wide;
    wide product = (wide)(hash ^ word) * 0x9e3779b97f4a7c15u;
    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

static inline uint64_t hash_word(uint64_t word)
{
    return hash_mix(word, 0x2545f4914f6cdd1du);
}

VISIBLE uint64_t hash_bytes(const char *bytes, size_t length);

/* The value of an entry, if it is that of `key`; else 0. */
static inline uint32_t cached_find(const struct cached *entry, uint64_t key)
{
    uint64_t value = __atomic_load_n(&entry->value, __ATOMIC_RELAXED);
    return (__atomic_load_n(&entry->mixed, __ATOMIC_RELAXED) ^ value) == key ? (uint32_t)value : 0;
}

static inline void cached_keep(struct cached *entry, uint64_t key, uint32_t value)
{
    __atomic_store_n(&entry->value, value, __ATOMIC_RELAXED);
    __atomic_store_n(&entry->mixed, key ^ value, __ATOMIC_RELAXED);
}

/* Empty, with its memory. 0 or the error's number. */
VISIBLE int cache_begin(struct cache *cache);

/* It may grow to MANY_SETS, 8 MiB, now and after each beginning. */
static inline void cache_keep_many(struct cache *cache)
{
    __atomic_store_n(&cache->most, MANY_SETS, __ATOMIC_RELAXED);
}

/* The number kept for `key`, or 0. */
static inline uint32_t cache_find(const struct cache *cache, uint64_t key)
{
    const struct cached *set = cache_set(cache, key);
    uint32_t value = 0;
    for (int way = 0; way < CACHE_WAYS && !value; way++)
        value = cached_find(&set[way], key);
    return value;
}

/* Keep `value` for `key`, neither of which is 0; the oldest of its set gives way. */
VISIBLE void cache_keep(struct cache *cache, uint64_t key, uint32_t value);
