#include "sampler/numbers.h"

#include <stdlib.h>
#include <string.h>

enum { FIRST_SLOTS = 256 };

static uint64_t mixed(uint64_t value)
{
    value ^= value >> 32;
    value *= 0xd6e8feb86659fd93u;
    value ^= value >> 32;
    value *= 0xd6e8feb86659fd93u;
    return value ^ value >> 32;
}

uint64_t key_of(uint64_t first, uint64_t second)
{
    uint64_t key = mixed(mixed(first + 0x9e3779b97f4a7c15u) ^ second);
    return key ? key : 1;
}

uint64_t key_of_text(const char *text, size_t bytes)
{
    uint64_t key = key_of(bytes, 0);
    while (bytes) {
        uint64_t word = 0;
        size_t taken = bytes < sizeof word ? bytes : sizeof word;
        memcpy(&word, text, taken);
        key = key_of(key, word);
        text += taken;
        bytes -= taken;
    }
    return key;
}

/* Where the key is, or would be. */
static size_t slot_of(const struct numbers *numbers, uint64_t key)
{
    size_t slot = (size_t)mixed(key) & (numbers->slots - 1);
    while (numbers->keys[slot] && numbers->keys[slot] != key)
        slot = (slot + 1) & (numbers->slots - 1);
    return slot;
}

uint32_t numbers_find(const struct numbers *numbers, uint64_t key)
{
    return numbers->slots ? numbers->values[slot_of(numbers, key)] : 0;
}

static bool grow(struct numbers *numbers)
{
    size_t slots = numbers->slots ? 2 * numbers->slots : FIRST_SLOTS;
    struct numbers larger = {calloc(slots, sizeof(uint64_t)), calloc(slots, sizeof(uint32_t)), slots, numbers->used};
    if (!larger.keys || !larger.values) {
        free(larger.keys);
        free(larger.values);
        return false;
    }
    for (size_t slot = 0; slot < numbers->slots; slot++) {
        if (!numbers->keys[slot])
            continue;
        size_t place = slot_of(&larger, numbers->keys[slot]);
        larger.keys[place] = numbers->keys[slot];
        larger.values[place] = numbers->values[slot];
    }
    free(numbers->keys);
    free(numbers->values);
    *numbers = larger;
    return true;
}

bool numbers_keep(struct numbers *numbers, uint64_t key, uint32_t value)
{
    if (2 * (numbers->used + 1) > numbers->slots && !grow(numbers))
        return false;
    size_t slot = slot_of(numbers, key);
    numbers->used += numbers->keys[slot] == 0;
    numbers->keys[slot] = key;
    numbers->values[slot] = value;
    return true;
}

void numbers_clear(struct numbers *numbers)
{
    free(numbers->keys);
    free(numbers->values);
    memset(numbers, 0, sizeof *numbers);
}
