/* Numbers by keys of 64 bits; it grows as it needs. For one thread alone. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct numbers {
    uint64_t *keys; /* 0 if there is none */
    uint32_t *values;
    size_t slots, used;
};

/* 0 if the key has none. A key is not 0. */
uint32_t numbers_find(const struct numbers *numbers, uint64_t key);

/* False if there is no room. */
bool numbers_keep(struct numbers *numbers, uint64_t key, uint32_t value);

/* All are forgotten. */
void numbers_clear(struct numbers *numbers);

/* A key of several; not 0. */
uint64_t key_of(uint64_t first, uint64_t second);
uint64_t key_of_text(const char *text, size_t bytes);
