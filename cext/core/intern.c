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
    size_t bytes = sizeof *cache->sets * CACHE_SETS;
    if (cache->sets)
        munmap(cache->sets, bytes);
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    cache->sets = memory == MAP_FAILED ? NULL : memory;
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

void cache_keep(struct cache *cache, uint64_t key, uint32_t value)
{
    struct cached *set = cache->sets[key % CACHE_SETS];
    for (int way = CACHE_WAYS - 1; way > 0; way--)
        copy(&set[way], &set[way - 1]);
    put(&set[0], key ^ value, value);
}
