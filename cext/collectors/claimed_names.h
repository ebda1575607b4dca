/* Names that collectors give: compared, hashed, and as numbers in strings. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "core/visible.h"

enum { LEAST_PAGE = 4096 };

/* Up to eight bytes as a number; which of the bytes stand where in it follows from how many there are. */
static __attribute__((always_inline)) inline uint64_t word_of(const char *text, size_t bytes)
{
    uint32_t first, last;
    if (bytes == 0)
        return 0;
    if (bytes < sizeof first)
        return (uint8_t)text[0] | (uint64_t)(uint8_t)text[bytes / 2] << 8 | (uint64_t)(uint8_t)text[bytes - 1] << 16;
    memcpy(&first, text, sizeof first);
    memcpy(&last, text + bytes - sizeof last, sizeof last);
    return first | (uint64_t)last << 32;
}

/* Whether a text is the cached one, which has this many bytes with its zero. If it is shorter, bytes after it are
   read too, but none of the next page, which may be unmapped. */
static __attribute__((always_inline, no_sanitize_address)) inline bool is_text(const char *text, const char *kept, size_t bytes)
{
    enum { WORD = sizeof(uint64_t) };
    if (UNLIKELY((uintptr_t)text % LEAST_PAGE > LEAST_PAGE - bytes))
        return strcmp(text, kept) == 0;
    for (; UNLIKELY(bytes > WORD); bytes -= WORD, text += WORD, kept += WORD)
        if (word_of(text, WORD) != word_of(kept, WORD))
            return false;
    return word_of(text, bytes) == word_of(kept, bytes);
}

uint64_t hash_text(uint64_t hash, const char *text);

uint32_t intern_name(const char *name);
