#define _GNU_SOURCE
#include "core/interning.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/detail_levels.h"
#include "core/exclusive.h"
#include "core/filter.h"
#include "core/intern.h"
#include "core/recorder.h"
#include "core/redact.h"
#include "core/room.h"
#include "core/series.h"
#include "core/session.h"
#include "core/statement_interning.h"
#include "core/threads.h"

/* A part of the ring, of the pool and of the limit: texts are kept until one of these is taken, and from half of it on
   without their numbers, so that those that differ in nothing else leave room for those to come. */
enum { TEXT_PARTS = 4, FOLDED_PARTS = 2 * TEXT_PARTS, FOLDED_BYTES = 2048 };

static struct {
    struct series strings, sites, stacks;
    struct cache string_cache, stack_cache;
    uint64_t ring_bytes;
} numbers;

void interning_choose(uint64_t ring_bytes)
{
    numbers.ring_bytes = ring_bytes;
}

void stacks_keep_many(void)
{
    cache_keep_many(&numbers.stack_cache);
}

int interning_begin(void)
{
    int failed = cache_begin(&numbers.string_cache);
    failed = failed ? failed : cache_begin(&numbers.stack_cache);
    return failed ? failed : statements_begin();
}

int interning_create(const char *directory, struct first_numbers first)
{
    int failed = series_create(&numbers.strings, directory, &data_types[DATA_STRINGS], first.string);
    failed = failed ? failed : series_create(&numbers.sites, directory, &data_types[DATA_SITES], first.site);
    return failed ? failed : series_create(&numbers.stacks, directory, &data_types[DATA_STACKS], first.stack);
}

struct first_numbers interning_next(void)
{
    return (struct first_numbers){numbers.strings.next, numbers.sites.next, numbers.stacks.next};
}

static uint64_t key_of(uint64_t hash)
{
    return hash ? hash : 1;
}

/* Recording ends where there is no room. */
static uint32_t counted(uint32_t number, int error)
{
    if (!number)
        session_stop(error);
    return number;
}

/* --- strings */

static uint32_t add_string(const char *text, size_t bytes)
{
    size_t kept = bytes > STRING_BYTES ? STRING_BYTES : bytes;
    char *record = series_extend(&numbers.strings, sizeof(uint32_t) + (kept + 3) / 4 * 4);
    if (!record)
        return 0;
    memcpy(record + sizeof(uint32_t), text, kept);
    if (kept < bytes)
        memcpy(record + sizeof(uint32_t) + kept - 3, "...", 3);
    __atomic_store_n((uint32_t *)(void *)record, (uint32_t)kept, __ATOMIC_RELEASE);
    return numbers.strings.next - 1;
}

static uint32_t keep_string(uint64_t key, const char *text, size_t bytes)
{
    size_t left = bytes;
    uint32_t number = filter_number_of(text, bytes);
    char *redacted = number ? NULL : redact(text, &left);
    if (!number && left)
        number = counted(add_string(redacted ? redacted : text, left), errno);
    free(redacted);
    cache_keep(&numbers.string_cache, key, number);
    return number;
}

/* How a text is kept that has no number yet; the lock is held. */
typedef uint32_t keeper(uint64_t key, const char *text, size_t bytes);

/* Another thread may have written it meanwhile. */
static uint32_t find_or_keep(keeper *keep, uint64_t key, const char *text, size_t bytes)
{
    uint32_t number = cache_find(&numbers.string_cache, key);
    return number || session_stopped() ? number : keep(key, text, bytes);
}

static uint32_t new_text(keeper *keep, uint64_t key, const char *text, size_t bytes)
{
    if (!exclusive_begin())
        return 0;
    uint32_t number = find_or_keep(keep, key, text, bytes);
    exclusive_end();
    return number;
}

static uint32_t text_intern(keeper *keep, const char *text, size_t bytes)
{
    if (bytes == 0 || session_stopped())
        return 0;
    uint64_t key = key_of(hash_bytes(text, bytes));
    uint32_t number = cache_find(&numbers.string_cache, key);
    return number ? number : new_text(keep, key, text, bytes);
}

uint32_t string_intern_held(const char *text, size_t bytes)
{
    return bytes ? find_or_keep(keep_string, key_of(hash_bytes(text, bytes)), text, bytes) : 0;
}

uint32_t string_intern(const char *text, size_t bytes)
{
    return text_intern(keep_string, text, bytes);
}

/* --- details */

static bool has_taken(uint64_t bytes, uint64_t of, uint64_t parts)
{
    return of && bytes >= of / parts;
}

static bool texts_have_taken(uint64_t parts)
{
    const struct control *control = recorder.control;
    uint64_t other = __atomic_load_n(&control->other_bytes, __ATOMIC_RELAXED);
    return has_taken(numbers.strings.end, numbers.ring_bytes, parts) || has_taken(other, control->pool_bytes, parts) ||
           has_taken(other, control->limit_bytes, parts);
}

static uint32_t keep_other(void)
{
    static const char other[] = "(other)";
    numbers.strings.head->lost++;
    return string_intern_held(other, sizeof other - 1);
}

/* What is redacted is looked for in the text as it was. */
static uint32_t keep_folded(const char *text, size_t bytes)
{
    char folded[FOLDED_BYTES];
    size_t left = bytes;
    char *redacted = redact(text, &left);
    left = left < sizeof folded ? left : sizeof folded;
    size_t length = argument_normalise(KIND_file, redacted ? redacted : text, left, folded);
    free(redacted);
    uint64_t key = key_of(hash_bytes(folded, length));
    uint32_t number = cache_find(&numbers.string_cache, key);
    if (number || !length)
        return number;
    return texts_have_taken(TEXT_PARTS) ? keep_other() : keep_string(key, folded, length);
}

/* A filter compares the numbers of the texts that it names: these are always kept. */
static uint32_t keep_detail(uint64_t key, const char *text, size_t bytes)
{
    if (!room_for_event(current_thread))
        return 0;
    if (!texts_have_taken(FOLDED_PARTS) || filter_number_of(text, bytes))
        return keep_string(key, text, bytes);
    return keep_folded(text, bytes);
}

uint32_t detail_find(const char *text, size_t bytes)
{
    return cache_find(&numbers.string_cache, key_of(hash_bytes(text, bytes)));
}

uint32_t detail_intern(const char *text, size_t bytes)
{
    return text_intern(keep_detail, text, bytes);
}

/* --- sites and stacks */

static uint32_t write_site(const struct site *site)
{
    struct site *record = series_extend(&numbers.sites, sizeof *record);
    if (!record)
        return 0;
    memcpy((char *)record + sizeof record->file, (const char *)site + sizeof record->file,
           sizeof *record - sizeof record->file);
    __atomic_store_n(&record->file, site->file, __ATOMIC_RELEASE);
    return numbers.sites.next - 1;
}

uint32_t site_add(const struct site *site)
{
    uint32_t number = 0;
    if (!session_stopped() && exclusive_begin()) {
        number = counted(write_site(site), errno);
        exclusive_end();
    }
    return number;
}

static uint32_t write_stack(uint32_t site, uint32_t outer, uint32_t cut)
{
    struct stack *record = series_extend(&numbers.stacks, sizeof *record);
    if (!record)
        return 0;
    record->outer = outer;
    record->cut = cut;
    __atomic_store_n(&record->site, site, __ATOMIC_RELEASE);
    return numbers.stacks.next - 1;
}

static uint32_t new_stack(uint64_t key, uint32_t site, uint32_t outer, uint32_t cut)
{
    if (!exclusive_begin())
        return 0;
    uint32_t number = cache_find(&numbers.stack_cache, key);
    if (!number && !session_stopped()) {
        number = counted(write_stack(site, outer, cut), errno);
        cache_keep(&numbers.stack_cache, key, number);
    }
    exclusive_end();
    return number;
}

uint32_t stack_intern(uint32_t site, uint32_t outer, uint32_t cut)
{
    if (site == 0 || session_stopped())
        return 0;
    uint64_t key = key_of(hash_mix(hash_word((uint64_t)site << 1 | (cut != 0)), outer));
    uint32_t number = cache_find(&numbers.stack_cache, key);
    return number ? number : new_stack(key, site, outer, cut);
}
