#define _GNU_SOURCE
#include "core/intern.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

/* Two independent chains; the last bytes are read together with earlier ones, because a copy of variable length is
   a call. */
uint64_t hash_bytes(const char *bytes, size_t length)
{
    const char *end = bytes + length;
    uint64_t even = hash_mix(length, 0x2545f4914f6cdd1du), odd = ~even, words[2] = {0, 0};
    for (; end - bytes > (ptrdiff_t)sizeof words; bytes += sizeof words) {
        memcpy(words, bytes, sizeof words);
        even = hash_mix(even, words[0]);
        odd = hash_mix(odd, words[1]);
    }
    if (length >= sizeof words)
        memcpy(words, end - sizeof words, sizeof words);
    else
        memcpy(words, bytes, length);
    return hash_mix(hash_mix(hash_mix(even, words[0]), hash_mix(odd, words[1])), 0xd6e8feb86659fd93u);
}

int cache_begin(struct cache *cache)
{
    size_t bytes = sizeof *cache->sets * MANY_SETS; /* most of them are never touched */
    if (cache->sets)
        munmap(cache->sets, bytes);
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    cache->sets = memory == MAP_FAILED ? NULL : memory;
    cache->used = FIRST_SETS;
    cache->kept = cache->grows = 0;
    return cache->sets ? 0 : errno;
}

static void put(struct cached *entry, uint64_t mixed, uint64_t value)
{
    __atomic_store_n(&entry->mixed, mixed, __ATOMIC_RELAXED);
    __atomic_store_n(&entry->value, value, __ATOMIC_RELAXED);
}

static void copy(struct cached *entry, const struct cached *from)
{
    put(entry, __atomic_load_n(&from->mixed, __ATOMIC_RELAXED), __atomic_load_n(&from->value, __ATOMIC_RELAXED));
}

static void keep_in(struct cached *set, uint64_t key, uint32_t value)
{
    for (int way = CACHE_WAYS - 1; way > 0; way--)
        copy(&set[way], &set[way - 1]);
    put(&set[0], key ^ value, value);
}

/* Use more sets. Meanwhile, lookups by other threads may miss entries that are kept. */
static void grow(struct cache *cache, uint32_t before, uint32_t after)
{
    __atomic_store_n(&cache->used, after, __ATOMIC_RELAXED);
    for (uint32_t place = 0; place < before * CACHE_WAYS; place++) {
        struct cached *entry = &cache->sets[place / CACHE_WAYS][place % CACHE_WAYS];
        uint64_t value = entry->value, key = entry->mixed ^ value;
        if (!value || cache_set(cache, key) == cache->sets[place / CACHE_WAYS])
            continue;
        put(entry, 0, 0);
        keep_in(cache_set(cache, key), key, (uint32_t)value);
    }
}

static void grow_if_due(struct cache *cache)
{
    uint32_t used = __atomic_load_n(&cache->used, __ATOMIC_RELAXED);
    uint32_t most = __atomic_load_n(&cache->most, __ATOMIC_RELAXED);
    uint32_t many = used < CACHE_SETS ? used / 2 : 2 * used; /* so that few sets have overflowed by then */
    uint32_t after = used < CACHE_SETS ? CACHE_SETS : 2 * used;
    if (__atomic_load_n(&cache->kept, __ATOMIC_RELAXED) < many || after > (most ? most : CACHE_SETS))
        return;
    if (__atomic_exchange_n(&cache->grows, 1, __ATOMIC_ACQUIRE))
        return;
    if (__atomic_load_n(&cache->used, __ATOMIC_RELAXED) == used)
        grow(cache, used, after);
    __atomic_store_n(&cache->grows, 0, __ATOMIC_RELEASE);
}

void cache_keep(struct cache *cache, uint64_t key, uint32_t value)
{
    __atomic_add_fetch(&cache->kept, 1, __ATOMIC_RELAXED);
    grow_if_due(cache);
    keep_in(cache_set(cache, key), key, value);
}
