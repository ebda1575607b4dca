#include "statement.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <strings.h>

struct scan {
    const char *begin, *at, *end;
    char *text;
    size_t length, room;
    size_t word;        /* where the last word in `text` begins */
    size_t word_before; /* and the one before it */
    bool space;  /* white space was seen since the last token */
};

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_word(char c)
{
    return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || (unsigned char)c >= 0x80;
}

static bool is_space(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

static char peek(const struct scan *scan, size_t ahead)
{
    return (size_t)(scan->end - scan->at) > ahead ? scan->at[ahead] : 0;
}

static void put(struct scan *scan, const char *bytes, size_t count)
{
    if (scan->space && scan->length && scan->length < scan->room)
        scan->text[scan->length++] = ' ';
    scan->space = false;
    if (count > scan->room - scan->length)
        count = scan->room - scan->length;
    scan->word_before = scan->word;
    scan->word = scan->length;
    memcpy(scan->text + scan->length, bytes, count);
    scan->length += count;
}

static void put_placeholder(struct scan *scan)
{
    put(scan, "?", 1);
}

/* Past the closing quote; a doubled quote, and where `backslash` says so an escaped one, is part of the text. */
static void skip_quoted(struct scan *scan, char quote, bool backslash)
{
    for (scan->at++; scan->at < scan->end; scan->at++) {
        if (backslash && *scan->at == '\\' && scan->at + 1 < scan->end)
            scan->at++;
        else if (*scan->at == quote && peek(scan, 1) == quote)
            scan->at++;
        else if (*scan->at == quote)
            break;
    }
    if (scan->at < scan->end)
        scan->at++;
}

/* A backslash may or may not escape a quote (MySQL; standard SQL). Where it matters, what is text and what is not
   cannot be told from here on, and the rest of the statement is hidden. */
static void skip_string(struct scan *scan, char quote)
{
    struct scan plain = *scan, escaped = *scan;
    skip_quoted(&plain, quote, false);
    skip_quoted(&escaped, quote, true);
    scan->at = plain.at == escaped.at ? plain.at : scan->end;
}

/* What begins a comment in one database is an operator in another: with a quote in it, what follows cannot be told. */
static bool skip_line_comment(struct scan *scan, bool certain)
{
    for (; scan->at < scan->end && *scan->at != '\n'; scan->at++)
        if (!certain && (*scan->at == '\'' || *scan->at == '"')) {
            scan->at = scan->end;
            return false;
        }
    scan->space = true;
    return true;
}

static void skip_block_comment(struct scan *scan)
{
    for (scan->at += 2; scan->at < scan->end; scan->at++)
        if (*scan->at == '*' && peek(scan, 1) == '/') {
            scan->at += 2;
            break;
        }
    scan->space = true;
}

/* $tag$ … $tag$ of PostgreSQL; false where it is not one ($1 is a placeholder). */
static bool skip_dollar_quoted(struct scan *scan)
{
    const char *tag = scan->at, *at = scan->at + 1;
    while (at < scan->end && is_word(*at) && !is_digit(*tag))
        at++;
    if (at >= scan->end || *at != '$' || is_digit(tag[1]))
        return false;
    size_t length = (size_t)(at + 1 - tag);
    for (at++; at < scan->end; at++)
        if ((size_t)(scan->end - at) >= length && memcmp(at, tag, length) == 0) {
            scan->at = at + length;
            return true;
        }
    scan->at = scan->end;
    return true;
}

static void skip_number(struct scan *scan)
{
    while (scan->at < scan->end) {
        char c = *scan->at, next = peek(scan, 1);
        bool sign = (c == 'e' || c == 'E') && (next == '+' || next == '-') && is_digit(peek(scan, 2));
        if (!is_word(c) && c != '.' && !sign)
            break;
        scan->at += sign ? 2 : 1;
    }
}

static bool last_word_is(const struct scan *scan, const char *word)
{
    size_t length = strlen(word);
    return scan->length - scan->word == length && strncasecmp(scan->text + scan->word, word, length) == 0;
}

/* IS DISTINCT FROM is followed by a value. */
static bool after_distinct(const struct scan *scan)
{
    static const char distinct[] = "distinct";
    return scan->word - scan->word_before >= sizeof distinct - 1 &&
           strncasecmp(scan->text + scan->word_before, distinct, sizeof distinct - 1) == 0;
}

static bool expects_identifier(const struct scan *scan)
{
    static const char *const words[] = {"from",  "join",  "into",   "update", "table",      "index", "as",
                                        "view",  "exists", "column", "trigger", "references", "constraint",
                                        "schema", "only"};
    if (scan->length && scan->text[scan->length - 1] == '.')
        return true;
    if (after_distinct(scan))
        return false;
    for (size_t index = 0; index < sizeof words / sizeof *words; index++)
        if (last_word_is(scan, words[index]))
            return true;
    return false;
}

/* [a name], and not the subscript or the array of another database. */
static bool is_bracketed_name(const struct scan *scan)
{
    const char *at = scan->at + 1;
    if (at >= scan->end || !is_word(*at) || is_digit(*at))
        return false;
    while (at < scan->end && (is_word(*at) || *at == ' '))
        at++;
    return at < scan->end && *at == ']';
}

static void take_identifier(struct scan *scan, char closing)
{
    const char *begin = scan->at;
    if (closing == ']')
        while (scan->at < scan->end && *scan->at != ']')
            scan->at++;
    else
        skip_quoted(scan, closing, false);
    if (closing == ']' && scan->at < scan->end)
        scan->at++;
    put(scan, begin, (size_t)(scan->at - begin));
}

static void take_double_quoted(struct scan *scan)
{
    struct scan ahead = *scan;
    skip_quoted(&ahead, '"', false);
    if (expects_identifier(scan) || peek(&ahead, 0) == '.') {
        take_identifier(scan, '"');
        return;
    }
    skip_string(scan, '"');
    put_placeholder(scan);
}

/* A word; where a quote follows at once it is a string's prefix (x'…', N'…', E'…', _utf8'…') and goes with it. */
static void take_word(struct scan *scan)
{
    const char *begin = scan->at;
    while (scan->at < scan->end && is_word(*scan->at))
        scan->at++;
    if (peek(scan, 0) == '\'') {
        skip_string(scan, '\'');
        put_placeholder(scan);
        return;
    }
    put(scan, begin, (size_t)(scan->at - begin));
}

/* ?1, $1 and :1 are placeholders with a number, not literals; x::1 and a[1:2] are not. */
static bool numbers_placeholder(const struct scan *scan)
{
    ptrdiff_t before = scan->at - scan->begin;
    char sign = before > 0 ? scan->at[-1] : 0;
    if (sign == '?' || sign == '$')
        return true;
    return sign == ':' && (before < 2 || is_space(scan->at[-2]) || scan->at[-2] == '(' || scan->at[-2] == ',' ||
                           scan->at[-2] == '=');
}

static void take_number(struct scan *scan)
{
    const char *begin = scan->at;
    bool placeholder = numbers_placeholder(scan);
    skip_number(scan);
    if (placeholder)
        put(scan, begin, (size_t)(scan->at - begin));
    else
        put_placeholder(scan);
}

static void take_token(struct scan *scan)
{
    char c = *scan->at, next = peek(scan, 1);
    if (is_space(c)) {
        scan->space = true;
        scan->at++;
    } else if (c == '\'') {
        skip_string(scan, c);
        put_placeholder(scan);
    } else if (c == '"') {
        take_double_quoted(scan);
    } else if (c == '`' || (c == '[' && is_bracketed_name(scan))) {
        take_identifier(scan, c == '`' ? '`' : ']');
    } else if ((c == '-' && next == '-') || (c == '#' && (is_space(next) || !next))) {
        if (!skip_line_comment(scan, c == '-' && is_space(peek(scan, 2))))
            put_placeholder(scan);
    } else if (c == '/' && next == '*') {
        skip_block_comment(scan);
    } else if (c == '$' && !is_digit(next) && skip_dollar_quoted(scan)) {
        put_placeholder(scan);
    } else if (is_digit(c) || (c == '.' && is_digit(next))) {
        take_number(scan);
    } else if (is_word(c)) {
        take_word(scan);
    } else {
        put(scan, scan->at++, 1);
    }
}

size_t statement_normalise(const char *sql, size_t bytes, char *text, size_t room)
{
    struct scan scan = {.begin = sql, .at = sql, .end = sql + bytes, .text = text, .room = room};
    while (scan.at < scan.end && scan.length < room)
        take_token(&scan);
    return scan.length;
}
