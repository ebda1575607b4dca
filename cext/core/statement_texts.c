/* Where texts and comments end, which differs by dialect. If it is unclear which text is a value, the rest of the
   statement is hidden. */
#define _GNU_SOURCE
#include "core/statement_scan.h"

#include <strings.h>

/* Past the quote that closes, NULL if none does; a doubled quote, and where `backslash` says so an escaped one, is
   part of the text. */
const char *sql_quoted_end(const char *at, const char *end, char quote, bool backslash)
{
    for (at++; at < end; at++) {
        if (backslash && *at == '\\' && at + 1 < end)
            at++;
        else if (*at == quote && (at + 1 == end || at[1] != quote))
            return at + 1;
        else if (*at == quote)
            at++;
    }
    return NULL;
}

static bool is_prefix(const char *prefix, const char *end, const char *word)
{
    return (size_t)(end - prefix) == strlen(word) && strncasecmp(prefix, word, (size_t)(end - prefix)) == 0;
}

/* q'[a text]' of Oracle: past its end, NULL if it has none. */
static const char *q_quoted_end(const struct scan *scan)
{
    static const char begins[] = "[{(<", ends[] = "]})>";
    char delimiter = peek(scan, 1);
    const char *pair = delimiter ? strchr(begins, delimiter) : NULL;
    char closing = pair ? ends[pair - begins] : delimiter;
    for (const char *at = scan->at + 2; at + 1 < scan->end; at++)
        if (*at == closing && at[1] == '\'')
            return at + 2;
    return NULL;
}

/* A backslash may or may not escape a quote: MySQL and PostgreSQL have settings for it, and the dialect may be any. */
static void skip_doubtful_string(struct scan *scan, char quote)
{
    const char *end = sql_quoted_end(scan->at, scan->end, quote, false);
    bool sure = end && sql_quoted_end(scan->at, scan->end, quote, true) == end;
    if (sure && scan->dialect == DIALECT_any && sql_is_tripled(scan))
        sure = end == sql_tripled_end(scan->at, scan->end);
    scan->at = sure ? end : scan->end;
}

static void skip_q_quoted(struct scan *scan)
{
    const char *end = q_quoted_end(scan);
    bool sure = scan->dialect == DIALECT_oracle || end == sql_quoted_end(scan->at, scan->end, '\'', false);
    scan->at = end && sure ? end : scan->end;
}

static bool is_q_quoted(const struct scan *scan, const char *prefix)
{
    bool may_be = scan->dialect == DIALECT_oracle || scan->dialect == DIALECT_any;
    return may_be && (is_prefix(prefix, scan->at, "q") || is_prefix(prefix, scan->at, "nq"));
}

void sql_skip_difficult_text(struct scan *scan, char quote, const char *prefix)
{
    bool sure = scan->dialect == DIALECT_sqlite || scan->dialect == DIALECT_oracle, escapes = false;
    if (is_q_quoted(scan, prefix)) {
        skip_q_quoted(scan);
        return;
    }
    if (scan->dialect == DIALECT_postgresql)
        sure = escapes = is_prefix(prefix, scan->at, "e");
    if (!sure) {
        skip_doubtful_string(scan, quote);
        return;
    }
    const char *end = sql_quoted_end(scan->at, scan->end, quote, escapes);
    scan->at = end ? end : scan->end;
}

/* PostgreSQL ends a comment at a carriage return too, MySQL and SQLite do not. */
static const char *line_end(const struct scan *scan)
{
    bool returns = scan->dialect != DIALECT_mysql && scan->dialect != DIALECT_sqlite;
    const char *at = scan->at;
    while (at < scan->end && *at != '\n' && !(returns && *at == '\r'))
        at++;
    return at;
}

static void take_line_comment(struct scan *scan, const char *text, bool certain)
{
    const char *at = line_end(scan);
    bool lone = at < scan->end && *at == '\r' && (at + 1 == scan->end || at[1] != '\n');
    bool ends = !lone || scan->dialect == DIALECT_postgresql;
    if (!ends || (!certain && sql_has_sign(text, at, sql_openings))) {
        sql_hide_rest(scan);
        return;
    }
    scan->at = at;
    put_space(scan);
}

bool sql_take_comment(struct scan *scan)
{
    bool dashes = *scan->at == '-', spaced = scan->at + 2 >= scan->end || (unsigned char)scan->at[2] <= ' ';
    bool any = scan->dialect == DIALECT_any, mysql = scan->dialect == DIALECT_mysql;
    if (!any && (mysql ? dashes && !spaced : !dashes))
        return false;
    take_line_comment(scan, scan->at + 1 + dashes, !any || (dashes && spaced));
    return true;
}

/* Past the comment, NULL if it is not closed. In it others may be nested. */
static const char *block_comment_end(const char *at, const char *end, bool nests)
{
    unsigned depth = 0;
    for (; at + 1 < end; at++) {
        bool opens = *at == '/' && at[1] == '*' && (nests || depth == 0), closes = *at == '*' && at[1] == '/';
        if (opens || closes)
            at++;
        depth += opens;
        if (closes && --depth == 0)
            return at + 1;
    }
    return NULL;
}

/* A comment of MySQL that begins with an exclamation mark is executed. */
void sql_take_block_comment(struct scan *scan)
{
    const char *begin = scan->at, *end = block_comment_end(begin, scan->end, scan->dialect == DIALECT_postgresql);
    const char *stop = end ? end : scan->end;
    bool mysql = scan->dialect == DIALECT_mysql || scan->dialect == DIALECT_any;
    bool runs = mysql && (peek(scan, 2) == '!' || (peek(scan, 2) == 'M' && peek(scan, 3) == '!'));
    bool doubtful = scan->dialect == DIALECT_any && end != block_comment_end(begin, scan->end, true);
    if (doubtful || (runs && sql_has_sign(begin + 2, stop - 2 * (end != NULL), sql_openings))) {
        sql_hide_rest(scan);
        return;
    }
    scan->at = stop;
    put_space(scan);
}

/* Does the sign stand within a name, as in a$b? */
static bool is_within_name(const struct scan *scan)
{
    const char *at = scan->at;
    while (at > scan->begin && (is_word(at[-1]) || is_digit(at[-1]) || at[-1] == '$'))
        at--;
    return at < scan->at && !is_digit(*at) && *at != '$';
}

/* $tag$ … $tag$ of PostgreSQL: past its end, or that of the statement; NULL if it is not one ($1 is a placeholder). */
static const char *dollar_quoted_end(const struct scan *scan)
{
    const char *tag = scan->at, *at = scan->at + 1;
    while (at < scan->end && is_word(*at))
        at++;
    if (at >= scan->end || *at != '$' || is_digit(tag[1]) || is_within_name(scan))
        return NULL;
    size_t length = (size_t)(at + 1 - tag);
    const char *close = memmem(at + 1, (size_t)(scan->end - at - 1), tag, length);
    return close ? close + length : scan->end;
}

bool sql_skip_dollar_quoted(struct scan *scan)
{
    bool may_be = scan->dialect != DIALECT_sqlite && scan->dialect != DIALECT_oracle;
    const char *end = may_be ? dollar_quoted_end(scan) : NULL;
    if (!end)
        return false;
    /* In MySQL dollars are letters of names, and from version 9 on quotes as well. */
    bool sure = scan->dialect == DIALECT_postgresql || !sql_has_sign(scan->at + 1, end - 1, "'\"`[/-#\\");
    scan->at = sure ? end : scan->end;
    return true;
}
