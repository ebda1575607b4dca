/* What is a name, and what only looks like one. */
#define _GNU_SOURCE
#include "core/statement_scan.h"

#include <strings.h>

/* The beginning of the word that ends at `end`; `end` if there is none. */
static size_t word_begin(const struct scan *scan, size_t end)
{
    while (end > 0 && is_word(scan->text[end - 1]))
        end--;
    return end;
}

/* IS DISTINCT FROM is followed by a value. */
static bool after_distinct(const struct scan *scan)
{
    static const char distinct[] = "distinct";
    size_t last = word_begin(scan, before_space(scan, scan->length));
    size_t end = before_space(scan, last), begin = word_begin(scan, end);
    return end - begin >= sizeof distinct - 1 &&
           strncasecmp(scan->text + begin, distinct, sizeof distinct - 1) == 0;
}

static bool expects_identifier(const struct scan *scan)
{
    static const char *const words[] = {"from",  "join",  "into",   "update", "table",      "index", "as",
                                        "view",  "exists", "column", "trigger", "references", "constraint",
                                        "schema", "only"};
    if (after_distinct(scan))
        return false;
    for (size_t index = 0; index < sizeof words / sizeof *words; index++)
        if (word_is(scan, scan->length, words[index]))
            return true;
    return false;
}

bool sql_is_doubtful_bracket(const struct scan *scan)
{
    const char *end = memchr(scan->at, ']', (size_t)(scan->end - scan->at));
    return end && sql_has_sign(scan->at + 1, end, sql_openings);
}

void sql_take_name(struct scan *scan, char closing)
{
    const char *begin = scan->at, *bracket = memchr(begin, ']', (size_t)(scan->end - begin));
    const char *end = closing != ']' ? sql_quoted_end(begin, scan->end, closing, false) : bracket ? bracket + 1 : NULL;
    if (!end) {
        sql_hide_rest(scan);
        return;
    }
    scan->at = end;
    put_from(scan, begin);
}

/* A dot is only next to names. */
static bool is_beside_dot(const struct scan *scan, const char *end)
{
    size_t before = before_space(scan, scan->length);
    return (before && scan->text[before - 1] == '.') || (end < scan->end && *end == '.');
}

static bool is_double_quoted_name(const struct scan *scan)
{
    if (scan->dialect == DIALECT_postgresql || scan->dialect == DIALECT_oracle)
        return true;
    const char *end = sql_quoted_end(scan->at, scan->end, '"', false);
    if (scan->dialect == DIALECT_mysql || !end)
        return false;
    if (scan->dialect == DIALECT_sqlite)
        return is_beside_dot(scan, end) || expects_identifier(scan);
    return is_beside_dot(scan, end) && !memchr(scan->at, '\\', (size_t)(end - scan->at));
}

void sql_take_double_quoted(struct scan *scan)
{
    if (is_double_quoted_name(scan)) {
        sql_take_name(scan, '"');
        return;
    }
    sql_skip_text(scan, '"', scan->at);
    put_placeholder(scan);
}

bool sql_is_plain_name(const struct scan *scan, char closing)
{
    const char *at = scan->at + 1;
    while (at < scan->end && (*at == ' ' || (is_word(*at) && (!is_digit(*at) || is_word(at[-1])))))
        at++;
    return at > scan->at + 1 && at < scan->end && *at == closing;
}

/* A name in MySQL and SQLite, an operator in PostgreSQL. */
void sql_take_backtick(struct scan *scan)
{
    if (scan->dialect == DIALECT_postgresql || scan->dialect == DIALECT_oracle)
        put(scan, scan->at++, 1);
    else if (scan->dialect == DIALECT_any && !sql_is_plain_name(scan, '`'))
        sql_hide_rest(scan);
    else
        sql_take_name(scan, '`');
}
