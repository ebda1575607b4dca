#define _GNU_SOURCE
#include "intern.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

uint64_t hash_bytes(const char *bytes, size_t length)
{
    uint64_t hash = hash_mix(length, 0x2545f4914f6cdd1du), word;
    for (; length >= sizeof word; bytes += sizeof word, length -= sizeof word) {
        memcpy(&word, bytes, sizeof word);
        hash = hash_mix(hash, word);
    }
    word = 0;
    memcpy(&word, bytes, length);
    return hash_mix(hash_mix(hash, word), 0xd6e8feb86659fd93u);
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

void cache_keep(struct cache *cache, uint64_t key, uint32_t value)
{
    struct cached *set = cache->sets[key % CACHE_SETS];
    memmove(set + 1, set, sizeof *set * (CACHE_WAYS - 1));
    set[0] = (struct cached){key, value};
}
