#include "core/statement_interning.h"

#include <string.h>

#include "core/detail_levels.h"
#include "core/intern.h"
#include "core/interning.h"
#include "core/recorder.h"
#include "core/session.h"
#include "core/statement_pattern.h"
#include "core/threads.h"

/* Of short statements one in this many is timed; a prime, so that statements that take turns are all timed. */
enum { SAMPLED = 17 };

static struct cache statement_cache;

int statements_begin(void)
{
    return cache_begin(&statement_cache);
}

uint32_t statement_find(uint64_t key)
{
    return cache_find(&statement_cache, key);
}

/* A statement that was asked for, and the text that is kept of it. */
struct asked {
    enum dialect dialect;
    const char *sql;
    size_t bytes;
    bool has_literals;
    const char *text;
    size_t text_bytes;
};

/* For how many statements this one is timed; 0: it is not. */
static uint32_t weight_of(struct thread *thread, size_t bytes)
{
    if (bytes > STATEMENT_SHORT)
        return 1;
    return thread->statements++ % SAMPLED ? 0 : SAMPLED;
}

static void keep_whole(struct asked *asked, char *text, size_t room)
{
    asked->text_bytes = asked->bytes < room ? asked->bytes : room;
    memcpy(text, asked->sql, asked->text_bytes);
    asked->has_literals = true; /* it may be a text of one call */
}

static size_t first_word(const char *text, size_t length)
{
    size_t word = 0;
    while (word < length && ((text[word] | 0x20) >= 'a' && (text[word] | 0x20) <= 'z'))
        word++;
    return word;
}

/* Find out what is kept of it. */
static void take_text(struct asked *asked, char *text, size_t room, struct statement_literals *noted)
{
    enum how_much how_much = arguments_kept(KIND_db);
    asked->text = text;
    if (how_much == KEEP_whole) {
        keep_whole(asked, text, room);
        return;
    }
    bool *literals = &asked->has_literals;
    size_t length = statement_normalise_noting(asked->dialect, asked->sql, asked->bytes, text, room, literals, noted);
    if (how_much == KEEP_nothing)
        length = 0;
    asked->text_bytes = how_much == KEEP_shape ? first_word(text, length) : length;
}

/* A text never seen before takes longest, and is timed by itself. */
static uint32_t timed_new_detail(struct thread *thread, const struct asked *asked)
{
    if (!asked->text_bytes || session_stopped())
        return 0;
    struct reading begin = own_begin(thread);
    uint32_t number = detail_intern(asked->text, asked->text_bytes);
    own_end(thread, begin);
    return number;
}

/* Is it worth comparing? One with a key is found by that the next time. */
static bool may_be_like(const struct asked *asked, uint64_t key)
{
    enum how_much how_much = arguments_kept(KIND_db);
    return !key && asked->bytes <= STATEMENT_SHORT && (how_much == KEEP_usual || how_much == KEEP_normalised);
}

/* By an earlier one that differs in literals alone. */
static uint32_t find_like(const struct scratch *scratch, struct asked *asked)
{
    uint32_t number = pattern_find(&scratch->patterns, recorder.serial, asked->dialect, asked->sql, asked->bytes);
    asked->has_literals = number != 0;
    return number;
}

/* By its normalised text. */
static uint32_t find_normalised(struct scratch *scratch, struct asked *asked, struct statement_literals *noted)
{
    take_text(asked, scratch->text, sizeof scratch->text, noted);
    return detail_find(asked->text, asked->text_bytes);
}

uint32_t statement_intern(uint64_t key, enum dialect dialect, const char *sql, size_t bytes, bool *literals)
{
    struct thread *thread = current_thread;
    struct scratch *scratch = thread_scratch(thread);
    struct asked asked = {.dialect = dialect, .sql = sql, .bytes = bytes};
    struct statement_literals noted;
    struct reading begin = {0, 0};
    uint32_t weight = weight_of(thread, bytes);
    if (!scratch)
        return 0;
    if (weight)
        begin = own_begin(thread);
    noted.count = 0;
    bool compares = may_be_like(&asked, key);
    uint32_t number = compares ? find_like(scratch, &asked) : 0;
    if (!number)
        number = find_normalised(scratch, &asked, compares ? &noted : NULL);
    if (weight)
        own_end_for(thread, begin, weight);
    number = number ? number : timed_new_detail(thread, &asked);
    if (noted.count && number)
        pattern_keep(&scratch->patterns, recorder.serial, dialect, sql, bytes, &noted, number);
    if (key)
        cache_keep(&statement_cache, key, number);
    *literals = asked.has_literals;
    return number;
}
