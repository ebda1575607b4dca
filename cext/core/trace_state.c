#include "core/trace_state.h"

#include <stdbool.h>
#include <string.h>

enum { MEMBERS_AT_MOST = 32, PART_BYTES = 256, LONG_BYTES = 128, LISTS_BYTES = 32 * 1024 };

struct member {
    const char *text;
    size_t bytes;
};

struct list {
    struct member members[MEMBERS_AT_MOST];
    size_t count, bytes; /* of all members, with commas */
};

static bool begins_key(char letter)
{
    return (letter >= 'a' && letter <= 'z') || (letter >= '0' && letter <= '9');
}

static bool is_of_key(char letter)
{
    return begins_key(letter) || (letter && strchr("_-*/@", letter));
}

static bool is_of_value(char letter)
{
    return letter >= ' ' && letter <= '~' && letter != ',' && letter != '=';
}

static bool all_are(bool is_one(char), const char *text, size_t bytes)
{
    for (size_t place = 0; place < bytes; place++)
        if (!is_one(text[place]))
            return false;
    return bytes && bytes <= PART_BYTES;
}

static bool is_valid(struct member member)
{
    const char *equals = memchr(member.text, '=', member.bytes);
    size_t key = equals ? (size_t)(equals - member.text) : 0;
    return key && begins_key(*member.text) && all_are(is_of_key, member.text, key) &&
           all_are(is_of_value, equals + 1, member.bytes - key - 1);
}

static bool is_space(char letter)
{
    return letter == ' ' || letter == '\t';
}

static struct member without_spaces(const char *text, size_t bytes)
{
    while (bytes && is_space(*text))
        text++, bytes--;
    while (bytes && is_space(text[bytes - 1]))
        bytes--;
    return (struct member){text, bytes};
}

/* The members of a list, of which some may be empty; false if it is invalid. */
static bool split(const char *text, size_t bytes, struct list *list)
{
    const char *end = text + bytes;
    list->count = list->bytes = 0;
    while (text < end) {
        const char *comma = memchr(text, ',', (size_t)(end - text));
        struct member member = without_spaces(text, (size_t)((comma ? comma : end) - text));
        text = comma ? comma + 1 : end;
        if (!member.bytes)
            continue;
        if (list->count == MEMBERS_AT_MOST || !is_valid(member))
            return false;
        list->bytes += member.bytes + (list->count > 0);
        list->members[list->count++] = member;
    }
    return true;
}

size_t trace_state_keep(const char *text, size_t bytes, char kept[TRACE_STATE_BYTES + 1])
{
    struct list list;
    size_t used = 0;
    if (bytes > LISTS_BYTES || !split(text, bytes, &list))
        list.count = 0;
    for (size_t place = 0; place < list.count; place++) {
        struct member member = list.members[place];
        if (list.bytes > TRACE_STATE_BYTES && member.bytes > LONG_BYTES)
            continue;
        if (used + (used > 0) + member.bytes > TRACE_STATE_BYTES)
            break;
        if (used)
            kept[used++] = ',';
        memcpy(kept + used, member.text, member.bytes);
        used += member.bytes;
    }
    kept[used] = 0;
    return used;
}
