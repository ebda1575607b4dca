#define _GNU_SOURCE
#include "core/detail_levels.h"

#include <stdbool.h>
#include <string.h>

#include "core/recorder.h"
#include "core/thread_notes.h"
#include "core/url.h"

enum { ARGUMENT_BYTES = 4096, LONGEST_ENDING = 8, SHORTEST_HEX = 8 };

static uint8_t kept[KIND_COUNT];
static uint32_t detail_ns; /* what a text costs */

void arguments_choose(enum kind kind, enum how_much how_much)
{
    kept[kind] = (uint8_t)how_much;
}

enum how_much arguments_kept(enum kind kind)
{
    return (enum how_much)kept[kind];
}

/* --- letters; no locale has a say */

static bool is_digit(char letter)
{
    return letter >= '0' && letter <= '9';
}

static bool is_hex(char letter)
{
    return is_digit(letter) || ((letter | 0x20) >= 'a' && (letter | 0x20) <= 'f');
}

static bool is_letter(char letter)
{
    return (letter | 0x20) >= 'a' && (letter | 0x20) <= 'z';
}

static size_t run_of(const char *text, size_t bytes, bool (*is_in)(char))
{
    size_t length = 0;
    while (length < bytes && is_in(text[length]))
        length++;
    return length;
}

/* --- shape */

static bool is_within_a_part(char letter)
{
    return !letter || !strchr("/:,[]()@ ;?#=&\\", letter);
}

/* `.csv` of a file's name; 0 if it has no such ending. */
static size_t length_of_ending(const char *part, size_t bytes)
{
    size_t length = 0;
    while (length < bytes && length < LONGEST_ENDING && (is_letter(part[bytes - 1 - length]) || is_digit(part[bytes - 1 - length])))
        length++;
    bool is_one = length && length + 1 < bytes && part[bytes - 1 - length] == '.' && is_letter(part[bytes - length]);
    return is_one ? length + 1 : 0;
}

/* Whether a part is kept unchanged: a port, a scheme, a request's method. */
static bool is_plain_part(enum kind kind, const char *text, size_t from, size_t length, size_t bytes)
{
    if (kind == KIND_file)
        return false;
    if (from && text[from - 1] == ':' && run_of(text + from, length, is_digit) == length)
        return true;
    size_t end = from + length;
    if ((from == 0 || text[from - 1] == ' ') && end + 2 < bytes && memcmp(text + end, "://", 3) == 0)
        return true;
    return from == 0 && end < bytes && text[end] == ' ' && (kind == KIND_net || kind == KIND_logic);
}

size_t argument_shape(enum kind kind, const char *text, size_t bytes, char *shape)
{
    size_t written = 0;
    for (size_t at = 0; at < bytes;) {
        size_t length = run_of(text + at, bytes - at, is_within_a_part), kept_from = at + length;
        bool is_last = at + length == bytes;
        if (length && is_plain_part(kind, text, at, length, bytes))
            kept_from = at;
        else if (length) {
            shape[written++] = '*';
            kept_from -= kind == KIND_file && is_last ? length_of_ending(text + at, length) : 0;
        }
        memcpy(shape + written, text + kept_from, at + length - kept_from);
        written += at + length - kept_from;
        at += length;
        if (at < bytes)
            shape[written++] = text[at++];
    }
    return written;
}

/* --- normalised */

static bool is_in_a_word(char letter)
{
    return is_letter(letter) || is_digit(letter);
}

/* A word that is one of many: a hash, a part of a UUID. */
static bool is_hash(const char *word, size_t length)
{
    bool any_digit = false;
    for (size_t at = 0; at < length; at++)
        any_digit |= is_digit(word[at]);
    return any_digit && length >= SHORTEST_HEX && run_of(word, length, is_hex) == length;
}

static size_t without_numbers(const char *word, size_t length, char *written)
{
    size_t count = 0;
    for (size_t at = 0; at < length;) {
        size_t digits = run_of(word + at, length - at, is_digit);
        written[count++] = digits ? '*' : word[at];
        at += digits ? digits : 1;
    }
    return count;
}

size_t argument_normalise(enum kind kind, const char *text, size_t bytes, char *normalised)
{
    size_t written = 0;
    for (size_t at = 0; at < bytes;) {
        size_t length = run_of(text + at, bytes - at, is_in_a_word);
        if (length && is_plain_part(kind, text, at, length, bytes)) {
            memcpy(normalised + written, text + at, length);
            written += length;
        } else if (length && is_hash(text + at, length)) {
            normalised[written++] = '*';
        } else {
            written += without_numbers(text + at, length, normalised + written);
        }
        at += length;
        if (at < bytes && !length)
            normalised[written++] = text[at++];
    }
    return written;
}

/* The name of a program, without its directory. */
static uint32_t intern_name(const char *text, size_t bytes)
{
    const char *slash = memrchr(text, '/', bytes);
    size_t before = slash ? (size_t)(slash + 1 - text) : 0;
    return detail_intern(text + before, bytes - before);
}

void arguments_cost(uint32_t ns)
{
    detail_ns = ns;
}

/* What is timed as recording's own includes it. */
static void charge_detail(void)
{
    struct thread *thread = current_thread;
    if (detail_ns && thread_records(thread) && !thread->own_depth)
        thread_charge_own(thread, detail_ns, detail_ns);
}

/* As long as the text is: the stack may be small. */
static uint32_t intern_changed(enum kind kind, enum how_much how_much, const char *text, size_t bytes)
{
    char left[bytes + 1];
    size_t length = how_much == KEEP_shape ? argument_shape(kind, text, bytes, left)
                                           : argument_normalise(kind, text, bytes, left);
    return detail_intern(left, length);
}

uint32_t argument_intern(enum kind kind, const char *text, size_t bytes)
{
    charge_detail();
    enum how_much how_much = arguments_kept(kind);
    if (how_much == KEEP_nothing)
        return 0;
    bool is_plain = how_much == KEEP_usual || how_much == KEEP_whole;
    if (is_plain || (how_much == KEEP_normalised && (kind == KIND_process || kind == KIND_db)))
        return detail_intern(text, bytes);
    if (kind == KIND_process)
        return intern_name(text, bytes);
    return intern_changed(kind, how_much, text, bytes < ARGUMENT_BYTES ? bytes : ARGUMENT_BYTES);
}

/* As long as the path is, as above. */
static __attribute__((noinline)) uint32_t intern_url(enum kind kind, const char *path, size_t bytes)
{
    char kept[bytes];
    struct text text = {.bytes = kept, .room = bytes};
    url_append(&text, path, bytes);
    return text.length ? argument_intern(kind, kept, text.length) : 0;
}

uint32_t path_intern(enum kind kind, const char *path, size_t bytes)
{
    if (UNLIKELY(may_be_url(path, bytes)))
        return intern_url(kind, path, bytes < ARGUMENT_BYTES ? bytes : ARGUMENT_BYTES);
    return argument_intern(kind, path, bytes);
}
