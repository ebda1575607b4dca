#include "program/kept_statements.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "core/intern.h"

/* A word is a hash, and above it what is kept: never torn. In each set, one of its words is that of what is looked for. */
enum { SETS = 512, WAYS = 4 };
static uint64_t kept[SETS][WAYS];
static uint32_t replaced, connections;

static uint64_t *set_of(uint64_t key, uint32_t *hash)
{
    uint64_t mixed = hash_mix(key, 1);
    *hash = (uint32_t)mixed;
    return kept[mixed >> 32 & (SETS - 1)];
}

static uint64_t read_word(const uint64_t *word)
{
    return __atomic_load_n(word, __ATOMIC_RELAXED);
}

static uint64_t *word_of(uint64_t *set, uint32_t hash)
{
    for (unsigned way = 0; way < WAYS; way++)
        if ((uint32_t)read_word(&set[way]) == hash && read_word(&set[way]) >> 32)
            return &set[way];
    return NULL;
}

static uint64_t *room_in(uint64_t *set)
{
    for (unsigned way = 0; way < WAYS; way++)
        if (!read_word(&set[way]))
            return &set[way];
    return &set[__atomic_fetch_add(&replaced, 1, __ATOMIC_RELAXED) % WAYS];
}

static void keep(uint64_t key, uint32_t value)
{
    uint32_t hash;
    uint64_t *set = set_of(key, &hash), *word = word_of(set, hash);
    if (!word && !value)
        return;
    __atomic_store_n(word ? word : room_in(set), value ? (uint64_t)value << 32 | hash : 0, __ATOMIC_RELAXED);
}

static uint32_t find(uint64_t key)
{
    uint32_t hash;
    uint64_t *set = set_of(key, &hash);
    for (unsigned way = 0; way < WAYS; way++) {
        uint64_t word = read_word(&set[way]);
        if ((uint32_t)word == hash && word >> 32)
            return (uint32_t)(word >> 32);
    }
    return 0;
}

void statement_keep(const void *of, uint32_t detail)
{
    if (of)
        keep((uintptr_t)of, detail);
}

uint32_t statement_kept(const void *of)
{
    return find((uintptr_t)of);
}

/* --- names: a connection has a number of its own while it lasts, which is kept as of an address within it */

static uint64_t key_of_number(const void *connection)
{
    return (uintptr_t)connection + 1;
}

static uint32_t new_number(const void *connection)
{
    uint32_t number = __atomic_add_fetch(&connections, 1, __ATOMIC_RELAXED);
    keep(key_of_number(connection), number);
    return number;
}

static uint64_t key_of_name(uint32_t number, const char *name)
{
    return hash_mix(hash_bytes(name, strlen(name)), number);
}

void statement_keep_named(const void *connection, const char *name, uint32_t detail)
{
    uint32_t number = find(key_of_number(connection));
    if (!connection || !name || (!number && !detail))
        return;
    keep(key_of_name(number ? number : new_number(connection), name), detail);
}

uint32_t statement_kept_named(const void *connection, const char *name)
{
    uint32_t number = find(key_of_number(connection));
    return number && name ? find(key_of_name(number, name)) : 0;
}

void statements_forget(const void *connection)
{
    keep((uintptr_t)connection, 0);
    keep(key_of_number(connection), 0);
}
