#include "collectors/claimed_names.h"

#include "core/intern.h"
#include "core/recorder.h"
#include "interpose_collector.h"

enum { LONGEST_NAME = INTERPOSE_NAME_BYTES - 1 };

uint64_t hash_text(uint64_t hash, const char *text)
{
    size_t left = text ? strnlen(text, LONGEST_NAME) : 0;
    hash += left + (text != NULL);
    for (; UNLIKELY(left > sizeof hash); left -= sizeof hash, text += sizeof hash)
        hash = hash_mix(hash, word_of(text, sizeof hash));
    return hash_mix(hash, word_of(text, left));
}

/* As many bytes of a text in UTF-8, without a character that is cut at the end. */
static size_t whole_letters(const char *text, size_t bytes)
{
    size_t begin = bytes;
    while (begin > 0 && bytes - begin < 3 && ((uint8_t)text[begin - 1] & 0xc0) == 0x80)
        begin--;
    uint8_t first = begin ? (uint8_t)text[begin - 1] : 0;
    size_t wanted = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : first >= 0xc0 ? 2 : 1;
    return begin && bytes - begin + 1 < wanted ? begin - 1 : bytes;
}

uint32_t intern_name(const char *name)
{
    size_t bytes = name ? strnlen(name, LONGEST_NAME) : 0;
    if (bytes == LONGEST_NAME)
        bytes = whole_letters(name, bytes);
    return name ? detail_intern(name, bytes) : 0;
}
