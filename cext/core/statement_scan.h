/* The parts of normalising SQL: where a text or a comment ends, what is a name, lists and rows; and what they share. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <strings.h>

#include "core/statement.h"
#include "core/statement_pattern.h"

/* White space is put as soon as it is seen, so `text` may end with one space; the last is taken off at the end. */
struct scan {
    const char *begin, *at, *end;
    char *text;
    size_t length, room;
    uint32_t row_depth; /* parentheses open since a row of VALUES began; 0 outside of rows */
    bool hidden;        /* this row or value is like those before it: read, but not kept */
    bool literals;
    enum dialect dialect;
    struct statement_literals *noted; /* literals that others may stand in place of, or NULL */
};

enum { UUID_BYTES = 36 }; /* as text */

/* Most bytes are copied without a look. A table finds the others: the type of each byte, and which ones cannot
   follow it unseen. */
enum { DIGIT = 1, BLANK = 2, DASH = 4, MARK = 8 /* examined wherever it is */ };
#define BYTE(is, looked_at_behind_it) ((is) | (looked_at_behind_it) << 4)
#define WORD BYTE(0, MARK) /* a digit in a word is no number */
#define OTHER BYTE(0, MARK | DIGIT)
#define LOOKED_AT BYTE(MARK, MARK | DIGIT)

extern const uint8_t statement_bytes[256];

static inline unsigned looked_at_behind(char c)
{
    return statement_bytes[(unsigned char)c] >> 4;
}

static inline bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static inline bool is_word(char c)
{
    return !(looked_at_behind(c) & DIGIT);
}

static inline bool is_space(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

static inline char peek(const struct scan *scan, size_t ahead)
{
    return (size_t)(scan->end - scan->at) > ahead ? scan->at[ahead] : 0;
}

static inline void put(struct scan *scan, const char *bytes, size_t count)
{
    if (scan->hidden)
        return;
    if (count > scan->room - scan->length)
        count = scan->room - scan->length;
    memcpy(scan->text + scan->length, bytes, count);
    scan->length += count;
}

static inline void put_from(struct scan *scan, const char *begin)
{
    put(scan, begin, (size_t)(scan->at - begin));
}

static inline bool ends_with_space(const struct scan *scan)
{
    return scan->length && scan->text[scan->length - 1] == ' ';
}

static inline void put_space(struct scan *scan)
{
    if (scan->length && scan->length < scan->room && !ends_with_space(scan))
        put(scan, " ", 1);
}

static inline void put_placeholder(struct scan *scan)
{
    scan->literals = true;
    put(scan, "?", 1);
}

static inline void skip_spaces(struct scan *scan)
{
    while (scan->at < scan->end && is_space(*scan->at))
        scan->at++;
}

static inline size_t before_space(const struct scan *scan, size_t end)
{
    return end > 0 && scan->text[end - 1] == ' ' ? end - 1 : end;
}

/* Is `word` the last one before `end` of the text? Behind a dot it is a name. */
static inline bool word_is(const struct scan *scan, size_t end, const char *word)
{
    size_t length = strlen(word);
    end = before_space(scan, end);
    return end >= length && (scan->text[end - 1] | 0x20) == word[length - 1] &&
           strncasecmp(scan->text + end - length, word, length) == 0 &&
           (end == length || (!is_word(scan->text[end - length - 1]) && scan->text[end - length - 1] != '.'));
}

/* --- statement_scan.c */

/* Anything that may begin a text, a name or a comment in some dialect. */
extern const char sql_openings[];

void sql_skip_word(struct scan *scan);

/* For the further values of a list, the further rows. */
void sql_put_more(struct scan *scan);

/* The rest of the statement becomes one placeholder. */
void sql_hide_rest(struct scan *scan);

/* Does any of these signs stand between the two places? */
bool sql_has_sign(const char *at, const char *end, const char *signs);

/* --- statement_texts.c */

/* Past the quote that closes, NULL if none does; a doubled quote, and where `backslash` says so an escaped one, is
   part of the text. */
const char *sql_quoted_end(const char *at, const char *end, char quote, bool backslash);

/* Past any text; the word before its quote, as the x of x'00', begins at `prefix`. */
void sql_skip_difficult_text(struct scan *scan, char quote, const char *prefix);

/* The same, at once past the most common: no backslash or doubled quote in it, no q of Oracle's before it. */
static inline void sql_skip_text(struct scan *scan, char quote, const char *prefix)
{
    bool may_be_q_quoted = prefix < scan->at && (scan->at[-1] | 0x20) == 'q';
    const char *at = scan->at + 1;
    while (at < scan->end && *at != quote && *at != '\\')
        at++;
    if (!may_be_q_quoted && at < scan->end && *at == quote && (at + 1 == scan->end || at[1] != quote))
        scan->at = at + 1;
    else
        sql_skip_difficult_text(scan, quote, prefix);
}

/* Skip $tag$ … $tag$; false if there is none. */
bool sql_skip_dollar_quoted(struct scan *scan);

/* Two dashes or a # begin a comment, or are operators. False if they certainly are these. */
bool sql_take_comment(struct scan *scan);
void sql_take_block_comment(struct scan *scan);

/* --- statement_doubts.c */

/* From here on it cannot be told what is a literal: SQLite skips byte order marks, and in dialects that are not known
   there are quotes and literals of other sorts. The end of the statement if there is none. */
const char *sql_certain_end(enum dialect dialect, const char *sql, const char *end);

/* Does a text begin with three quotes, as those of BigQuery do, and those whose first character is a quote? */
bool sql_is_tripled(const struct scan *scan);

/* Past the three quotes that end such a text, NULL if none do. */
const char *sql_tripled_end(const char *at, const char *end);

/* --- statement_noting.c */

/* Note a literal that ends here, if others may stand in its place. A text begins with this quote. */
void sql_note_number(struct scan *scan, const char *begin);
void sql_note_text(struct scan *scan, const char *quote);

/* Where such a literal ends; NULL if none begins here. What follows it is not looked at. */
const char *sql_plain_number_end(const char *begin, const char *end);
const char *sql_plain_text_end(const char *begin, const char *end);

/* --- statement_names.c */

/* A name in quotes; one without an end is not a name. */
void sql_take_name(struct scan *scan, char closing);

/* Text in double quotes or backticks: a name in one dialect, something else in another. */
void sql_take_double_quoted(struct scan *scan);
void sql_take_backtick(struct scan *scan);

/* Does a name stand between the signs that would be the same words without them? */
bool sql_is_plain_name(const struct scan *scan, char closing);

/* [a name] that has a quote in it, and which may be a subscript in another database? */
bool sql_is_doubtful_bracket(const struct scan *scan);

/* --- statement_lists.c */

void sql_take_opening(struct scan *scan);
void sql_take_closing(struct scan *scan);
void sql_take_bracket(struct scan *scan);

/* --- statement.c */

void sql_skip_number(struct scan *scan);

/* ?1, $1 and :1 are placeholders with a number, not literals; x::1 and a[1:2] are not. */
bool sql_numbers_placeholder(const struct scan *scan);
