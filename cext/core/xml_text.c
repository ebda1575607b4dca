#include "core/xml_text.h"

#include <stdlib.h>

enum { FIRST_ROOM = 4096 };

static bool make_room(struct xml_text *out, size_t bytes)
{
    size_t room = out->room ? out->room : FIRST_ROOM;
    while (room - out->bytes < bytes)
        room *= 2;
    char *text = out->failed ? NULL : realloc(out->text, room);
    if (!text) {
        xml_free(out);
        out->failed = true;
        return false;
    }
    out->text = text;
    out->room = room;
    return true;
}

void xml_put_bytes(struct xml_text *out, const char *piece, size_t bytes)
{
    if (out->room - out->bytes < bytes && !make_room(out, bytes))
        return;
    memcpy(out->text + out->bytes, piece, bytes);
    out->bytes += bytes;
}

void xml_put_number(struct xml_text *out, const char *before, unsigned long number)
{
    char digits[24], *first = digits + sizeof digits;
    do {
        *--first = (char)('0' + number % 10);
        number /= 10;
    } while (number);
    xml_put(out, before);
    xml_put_bytes(out, first, (size_t)(digits + sizeof digits - first));
}

/* --- text */

static const char *markup_of(unsigned char letter)
{
    switch (letter) {
    case '&':
        return "&amp;";
    case '<':
        return "&lt;";
    case '>':
        return "&gt;";
    case '"':
        return "&quot;";
    default:
        return NULL;
    }
}

static bool is_plain(unsigned char letter)
{
    return letter >= ' ' && letter < 127 && !markup_of(letter);
}

static size_t length_by_first(unsigned char first)
{
    return first < 0x80 ? 1 : first < 0xC2 ? 0 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : first < 0xF5 ? 4 : 0;
}

/* The code point of the character at `at`; `length` becomes its number of bytes. Returns 0, and a length of 1, if it is
   not valid UTF-8. */
static unsigned long letter_at(const unsigned char *at, size_t left, size_t *length)
{
    static const unsigned char first_bits[] = {0, 0x7F, 0x1F, 0x0F, 0x07};
    static const unsigned long least[] = {0, 0, 0x80, 0x800, 0x10000};
    size_t bytes = length_by_first(at[0]);
    unsigned long found = at[0] & first_bits[bytes];
    *length = 1;
    if (!bytes || bytes > left)
        return 0;
    for (size_t each = 1; each < bytes; each++) {
        if ((at[each] & 0xC0) != 0x80)
            return 0;
        found = found << 6 | (at[each] & 0x3Fu);
    }
    if (found < least[bytes])
        return 0;
    *length = bytes;
    return found;
}

/* False for what XML does not allow, and for invisible characters: those that control a terminal or the direction of
   text, and those without a meaning. */
static bool has_place(unsigned long letter)
{
    static const unsigned long without[][2] = {
        {0, ' '},          {0x7F, 0xA0},      {0x200B, 0x2010},  {0x2028, 0x2030},
        {0x2060, 0x2070},  {0xD800, 0xF900},  {0xFEFF, 0xFF00},  {0xFFF0, 0xFFFC},
    };
    for (size_t range = 0; range < sizeof without / sizeof *without; range++)
        if (letter >= without[range][0] && letter < without[range][1])
            return false;
    return (letter & 0xFFFE) != 0xFFFE && letter < 0xE0000;
}

void xml_put_escaped(struct xml_text *out, const char *text, size_t bytes)
{
    const unsigned char *letters = (const unsigned char *)text;
    size_t at = 0, length;
    while (at < bytes) {
        size_t plain = at;
        while (plain < bytes && is_plain(letters[plain]))
            plain++;
        xml_put_bytes(out, text + at, plain - at);
        at = plain;
        if (at == bytes)
            return;
        const char *markup = markup_of(letters[at]);
        bool fits = has_place(letter_at(letters + at, bytes - at, &length));
        if (markup || !fits)
            xml_put(out, markup ? markup : "?");
        else
            xml_put_bytes(out, text + at, length);
        at += length;
    }
}

void xml_free(struct xml_text *out)
{
    free(out->text);
    *out = (struct xml_text){NULL, 0, 0, false};
}
