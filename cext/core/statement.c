#define _GNU_SOURCE
#include "core/statement.h"

#include <stdint.h>
#include <string.h>
#include <strings.h>

#include "core/statement_secrets.h"

/* White space is put as soon as it is seen, so `text` may end with one space; the last is taken off at the end. */
struct scan {
    const char *begin, *at, *end;
    char *text;
    size_t length, room;
    uint32_t row_depth; /* parentheses open since a row of VALUES began; 0 outside of rows */
    bool hidden;        /* this row or value is like those before it: read, but not kept */
    bool literals;
    enum dialect dialect;
};

/* Most bytes are copied without a look. Those that need one are found by a table: what each byte is, and which ones may
   not stand behind it without being looked at. */
enum { DIGIT = 1, BLANK = 2, DASH = 4, MARK = 8 /* examined wherever it is */ };
#define BYTE(is, looked_at_behind_it) ((is) | (looked_at_behind_it) << 4)
#define WORD BYTE(0, MARK) /* a digit in a word is no number */
#define OTHER BYTE(0, MARK | DIGIT)
#define LOOKED_AT BYTE(MARK, MARK | DIGIT)

static const uint8_t bytes_of[256] = {
    [0 ... '\t' - 1] = OTHER,
    ['\t' ... '\r'] = LOOKED_AT,
    ['\r' + 1 ... ' ' - 1] = OTHER,
    [' '] = BYTE(BLANK, MARK | BLANK | DIGIT),
    ['!'] = OTHER,
    ['"' ... '$'] = LOOKED_AT,
    ['%' ... '&'] = OTHER,
    ['\'' ... ')'] = LOOKED_AT,
    ['*' ... ','] = OTHER,
    ['-'] = BYTE(DASH, MARK | DASH | DIGIT),
    ['.'] = OTHER,
    ['/'] = LOOKED_AT,
    ['0' ... '9'] = BYTE(DIGIT, MARK),
    [':' ... '@'] = OTHER,
    ['A' ... 'Z'] = WORD,
    ['['] = LOOKED_AT,
    ['\\' ... '^'] = OTHER,
    ['_'] = WORD,
    ['`'] = LOOKED_AT,
    ['a' ... 'z'] = WORD,
    ['{' ... 0x7f] = OTHER,
    [0x80 ... 0xff] = WORD,
};

static unsigned looked_at_behind(char c)
{
    return bytes_of[(unsigned char)c] >> 4;
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_word(char c)
{
    return !(looked_at_behind(c) & DIGIT);
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
    if (scan->hidden)
        return;
    if (count > scan->room - scan->length)
        count = scan->room - scan->length;
    memcpy(scan->text + scan->length, bytes, count);
    scan->length += count;
}

static void put_from(struct scan *scan, const char *begin)
{
    put(scan, begin, (size_t)(scan->at - begin));
}

static bool ends_with_space(const struct scan *scan)
{
    return scan->length && scan->text[scan->length - 1] == ' ';
}

static void put_space(struct scan *scan)
{
    if (scan->length && scan->length < scan->room && !ends_with_space(scan))
        put(scan, " ", 1);
}

static void put_placeholder(struct scan *scan)
{
    scan->literals = true;
    put(scan, "?", 1);
}

/* For the further values of a list, the further rows. */
static void put_more(struct scan *scan)
{
    static const char more[] = ", \u2026";
    scan->length -= ends_with_space(scan);
    put(scan, more, sizeof more - 1);
}

static void skip_spaces(struct scan *scan)
{
    while (scan->at < scan->end && is_space(*scan->at))
        scan->at++;
}

static void skip_word(struct scan *scan)
{
    while (scan->at < scan->end && is_word(*scan->at))
        scan->at++;
}

/* --- what begins and ends otherwise in one dialect than in another. Where it cannot be told which text is a value, all
   the rest of the statement is hidden. */

static void hide_rest(struct scan *scan)
{
    scan->at = scan->end;
    put_placeholder(scan);
}

/* Does any of these signs stand between the two places? */
static bool has_sign(const char *at, const char *end, const char *signs)
{
    for (; at < end; at++)
        if (*at && strchr(signs, *at))
            return true;
    return false;
}

/* Anything that may begin a text, a name or a comment in some dialect. */
static const char opening[] = "'\"`[$/-#\\";

/* Past the quote that closes, NULL where none does; a doubled quote, and where `backslash` says so an escaped one, is
   part of the text. */
static const char *quoted_end(const char *at, const char *end, char quote, bool backslash)
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

/* q'[a text]' of Oracle: past its end, NULL where it has none. */
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
    const char *end = quoted_end(scan->at, scan->end, quote, false);
    scan->at = end && quoted_end(scan->at, scan->end, quote, true) == end ? end : scan->end;
}

static __attribute__((noinline)) void skip_difficult_string(struct scan *scan, char quote, const char *prefix)
{
    bool sure = scan->dialect == DIALECT_sqlite || scan->dialect == DIALECT_oracle, escapes = false;
    if (scan->dialect == DIALECT_postgresql)
        sure = escapes = is_prefix(prefix, scan->at, "e");
    if (!sure) {
        skip_doubtful_string(scan, quote);
        return;
    }
    const char *end = quoted_end(scan->at, scan->end, quote, escapes);
    scan->at = end ? end : scan->end;
}

static __attribute__((noinline)) void skip_q_quoted(struct scan *scan)
{
    const char *end = q_quoted_end(scan);
    bool sure = scan->dialect == DIALECT_oracle || end == quoted_end(scan->at, scan->end, '\'', false);
    scan->at = end && sure ? end : scan->end;
}

/* Skip a text whose prefix before the quote, such as the x of x'00', begins at `prefix`. */
static inline void skip_string(struct scan *scan, char quote, const char *prefix)
{
    if (prefix < scan->at && (scan->at[-1] | 0x20) == 'q' &&
        (scan->dialect == DIALECT_oracle || scan->dialect == DIALECT_any) &&
        (is_prefix(prefix, scan->at, "q") || is_prefix(prefix, scan->at, "nq"))) {
        skip_q_quoted(scan);
        return;
    }
    const char *at = scan->at + 1;
    while (at < scan->end && *at != quote && *at != '\\')
        at++;
    if (at < scan->end && *at == quote && (at + 1 == scan->end || at[1] != quote))
        scan->at = at + 1;
    else
        skip_difficult_string(scan, quote, prefix);
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
    if (!ends || (!certain && has_sign(text, at, opening))) {
        hide_rest(scan);
        return;
    }
    scan->at = at;
    put_space(scan);
}

/* Two dashes or a # begin a comment, or are operators. False where they certainly are these. */
static bool take_comment(struct scan *scan)
{
    bool dashes = *scan->at == '-', spaced = scan->at + 2 >= scan->end || (unsigned char)scan->at[2] <= ' ';
    bool any = scan->dialect == DIALECT_any, mysql = scan->dialect == DIALECT_mysql;
    if (!any && (mysql ? dashes && !spaced : !dashes))
        return false;
    take_line_comment(scan, scan->at + 1 + dashes, !any || (dashes && spaced));
    return true;
}

/* Past the comment, NULL where it is not closed. In it others may be nested. */
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
static void take_block_comment(struct scan *scan)
{
    const char *begin = scan->at, *end = block_comment_end(begin, scan->end, scan->dialect == DIALECT_postgresql);
    const char *stop = end ? end : scan->end;
    bool mysql = scan->dialect == DIALECT_mysql || scan->dialect == DIALECT_any;
    bool runs = mysql && (peek(scan, 2) == '!' || (peek(scan, 2) == 'M' && peek(scan, 3) == '!'));
    bool doubtful = scan->dialect == DIALECT_any && end != block_comment_end(begin, scan->end, true);
    if (doubtful || (runs && has_sign(begin + 2, stop - 2 * (end != NULL), opening))) {
        hide_rest(scan);
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

/* $tag$ … $tag$ of PostgreSQL: past its end, or that of the statement; NULL where it is not one ($1 is a placeholder). */
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

static bool skip_dollar_quoted(struct scan *scan)
{
    bool may_be = scan->dialect != DIALECT_sqlite && scan->dialect != DIALECT_oracle;
    const char *end = may_be ? dollar_quoted_end(scan) : NULL;
    if (!end)
        return false;
    /* In MySQL dollars are letters of names, and from version 9 on quotes as well. */
    bool sure = scan->dialect == DIALECT_postgresql || !has_sign(scan->at + 1, end - 1, "'\"`[/-#\\");
    scan->at = sure ? end : scan->end;
    return true;
}

/* With its exponent: 1e-10. */
static void skip_number(struct scan *scan)
{
    for (scan->at++; scan->at < scan->end; scan->at++) {
        char c = *scan->at;
        bool sign = (c == '+' || c == '-') && (scan->at[-1] | 0x20) == 'e' && is_digit(peek(scan, 1));
        if (!is_word(c) && c != '.' && !sign)
            break;
    }
}

/* The beginning of the word that ends at `end`; `end` if there is none. */
static size_t word_begin(const struct scan *scan, size_t end)
{
    while (end > 0 && is_word(scan->text[end - 1]))
        end--;
    return end;
}

static size_t before_space(const struct scan *scan, size_t end)
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

/* [a name] that has a quote in it, and which may be a subscript in another database? */
static bool is_doubtful_bracket(const struct scan *scan)
{
    const char *end = memchr(scan->at, ']', (size_t)(scan->end - scan->at));
    return end && has_sign(scan->at + 1, end, opening);
}

/* A name in quotes; one without an end is not a name. */
static void take_name(struct scan *scan, char closing)
{
    const char *begin = scan->at, *bracket = memchr(begin, ']', (size_t)(scan->end - begin));
    const char *end = closing != ']' ? quoted_end(begin, scan->end, closing, false) : bracket ? bracket + 1 : NULL;
    if (!end) {
        hide_rest(scan);
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
    const char *end = quoted_end(scan->at, scan->end, '"', false);
    if (scan->dialect == DIALECT_mysql || !end)
        return false;
    if (scan->dialect == DIALECT_sqlite)
        return is_beside_dot(scan, end) || expects_identifier(scan);
    return is_beside_dot(scan, end) && !memchr(scan->at, '\\', (size_t)(end - scan->at));
}

static void take_double_quoted(struct scan *scan)
{
    if (is_double_quoted_name(scan)) {
        take_name(scan, '"');
        return;
    }
    skip_string(scan, '"', scan->at);
    put_placeholder(scan);
}

/* Does a name stand between the signs that would be the same words without them? */
static bool is_plain_name(const struct scan *scan, char closing)
{
    const char *at = scan->at + 1;
    while (at < scan->end && (*at == ' ' || (is_word(*at) && (!is_digit(*at) || is_word(at[-1])))))
        at++;
    return at > scan->at + 1 && at < scan->end && *at == closing;
}

/* A name in MySQL and SQLite, an operator in PostgreSQL. */
static void take_backtick(struct scan *scan)
{
    if (scan->dialect == DIALECT_postgresql || scan->dialect == DIALECT_oracle)
        put(scan, scan->at++, 1);
    else if (scan->dialect == DIALECT_any && !is_plain_name(scan, '`'))
        hide_rest(scan);
    else
        take_name(scan, '`');
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
        put_from(scan, begin);
    else
        put_placeholder(scan);
}

/* --- lists and rows */

/* ?, ?1, $1, :name, @name, %s, %(name)s: what the program fills in. */
static bool take_program_placeholder(struct scan *scan)
{
    const char *begin = scan->at++;
    bool named = *begin == '%' && peek(scan, 0) == '(';
    if (is_digit(peek(scan, 0)) && !numbers_placeholder(scan))
        return false;
    scan->at += named;
    skip_word(scan);
    if (named && (peek(scan, 0) != ')' || peek(scan, 1) != 's'))
        return false;
    scan->at += 2 * named;
    put_from(scan, begin);
    return true;
}

/* A literal, with its sign, or a placeholder; false where it is neither. */
static bool take_plain_value(struct scan *scan)
{
    const char *begin = scan->at;
    if (peek(scan, 0) && strchr("?:@%", *begin))
        return take_program_placeholder(scan);
    if (peek(scan, 0) == '$' && is_digit(peek(scan, 1)))
        return take_program_placeholder(scan);
    if (peek(scan, 0) == '-' || peek(scan, 0) == '+')
        scan->at++;
    if (is_digit(peek(scan, 0)) || (peek(scan, 0) == '.' && is_digit(peek(scan, 1)))) {
        skip_number(scan);
    } else if (peek(scan, 0) == '"') {
        take_double_quoted(scan);
        return true;
    } else if (peek(scan, 0) != '$' || !skip_dollar_quoted(scan)) {
        const char *prefix = scan->at;
        skip_word(scan);
        if (peek(scan, 0) != '\'')
            return false;
        skip_string(scan, '\'', prefix);
    }
    put_placeholder(scan);
    return true;
}

/* The next value of a list; false if it is not a value, or only a part of one: 2 + x. */
static bool take_value(struct scan *scan, char closing)
{
    skip_spaces(scan);
    if (scan->at >= scan->end || !take_plain_value(scan))
        return false;
    skip_spaces(scan);
    return peek(scan, 0) == ',' || peek(scan, 0) == closing;
}

/* The values of IN or ARRAY, however many: the first one and three dots. Anything but a plain value is treated as
   elsewhere. */
static void take_list(struct scan *scan, char closing)
{
    struct scan ahead = *scan;
    if (!take_value(&ahead, closing))
        return;
    *scan = ahead;
    ahead.hidden = true;
    bool more = false;
    while (*ahead.at == ',') {
        ahead.at++;
        if (!take_value(&ahead, closing))
            break;
        scan->at = ahead.at;
        more = true;
    }
    scan->literals |= ahead.literals;
    if (more)
        put_more(scan);
}

/* Does a row of VALUES begin here, or of IN ((1, 2), (3, 4))? */
static bool begins_row(const struct scan *scan)
{
    size_t end = before_space(scan, scan->length);
    if (end && scan->text[end - 1] == '(')
        return word_is(scan, end - 1, "in");
    return word_is(scan, end, "values");
}

static void take_opening(struct scan *scan)
{
    bool list = word_is(scan, scan->length, "in");
    if (scan->row_depth || begins_row(scan))
        scan->row_depth++;
    put(scan, scan->at++, 1);
    if (list)
        take_list(scan, ')');
}

/* Past the comma and the parenthesis that begin another row. */
static bool skip_to_row(struct scan *scan)
{
    struct scan ahead = *scan;
    skip_spaces(&ahead);
    if (peek(&ahead, 0) != ',')
        return false;
    ahead.at++;
    skip_spaces(&ahead);
    if (peek(&ahead, 0) != '(')
        return false;
    scan->at = ahead.at + 1;
    return true;
}

/* Rows after the first are not kept. */
static void take_closing(struct scan *scan)
{
    put(scan, scan->at++, 1);
    if (scan->row_depth == 0 || --scan->row_depth)
        return;
    bool more = skip_to_row(scan);
    if (more && !scan->hidden)
        put_more(scan);
    scan->row_depth = more;
    scan->hidden = more;
}

static void take_bracket(struct scan *scan)
{
    bool list = word_is(scan, scan->length, "array"), any = scan->dialect == DIALECT_any;
    if (scan->dialect == DIALECT_sqlite || (any && is_plain_name(scan, ']'))) {
        take_name(scan, ']');
    } else if (any && !list && is_doubtful_bracket(scan)) {
        hide_rest(scan);
    } else {
        put(scan, scan->at++, 1);
        if (list)
            take_list(scan, ']');
    }
}

/* --- the whole */

/* Copy up to the first byte that needs a look. */
static inline void copy_plain(struct scan *scan)
{
    const char *at = scan->at, *end = scan->end;
    char *to = scan->text + scan->length;
    if ((size_t)(end - at) > scan->room - scan->length)
        end = at + (scan->room - scan->length);
    unsigned looked_at = !scan->length || to[-1] == ' ' ? looked_at_behind(' ') : MARK | DIGIT;
    for (; at < end; at++) {
        unsigned byte = bytes_of[(unsigned char)*at];
        if (byte & looked_at)
            break;
        *to++ = *at;
        looked_at = byte >> 4;
    }
    scan->at = at;
    scan->length = (size_t)(to - scan->text);
}

/* The same where nothing is kept. */
static __attribute__((noinline)) void skip_plain(struct scan *scan)
{
    unsigned looked_at = MARK | DIGIT;
    for (; scan->at < scan->end; scan->at++) {
        unsigned byte = bytes_of[(unsigned char)*scan->at];
        if (byte & looked_at & ~BLANK)
            break;
        looked_at = byte >> 4;
    }
}

/* What was copied last belongs to the literal or comment that begins here: the x of x'00', the dot of .5, a dash.
   Returns how many characters precede a quote. */
static inline size_t take_back(struct scan *scan, const char *begin)
{
    size_t back = 0, prefix = 0;
    if (*scan->at == '\'') {
        while (scan->at - back > begin && is_word(scan->at[-1 - (ptrdiff_t)back]))
            back++;
        prefix = back;
    } else if (*scan->at == '-' || (is_digit(*scan->at) && scan->at > begin && scan->at[-1] == '.')) {
        scan->at -= back = 1;
    }
    if (!scan->hidden)
        scan->length -= back;
    return prefix;
}

/* Anything but a string or a number. */
static __attribute__((noinline)) void take_mark(struct scan *scan)
{
    char c = *scan->at, next = peek(scan, 1);
    if (is_space(c)) {
        skip_spaces(scan);
        put_space(scan);
    } else if (c == '(') {
        take_opening(scan);
    } else if (c == ')') {
        take_closing(scan);
    } else if (c == '"') {
        take_double_quoted(scan);
    } else if (c == '`') {
        take_backtick(scan);
    } else if (c == '[') {
        take_bracket(scan);
    } else if (c == '/' && next == '*') {
        take_block_comment(scan);
    } else if (c == '$' && !is_digit(next) && skip_dollar_quoted(scan)) {
        put_placeholder(scan);
    } else if ((c != '-' && c != '#') || !take_comment(scan)) {
        put(scan, scan->at++, 1);
    }
}

static inline void take_token(struct scan *scan, size_t prefix)
{
    if (*scan->at == '\'') {
        skip_string(scan, '\'', scan->at - prefix);
        put_placeholder(scan);
    } else if (is_digit(*scan->at) || *scan->at == '.') {
        take_number(scan);
    } else {
        take_mark(scan);
    }
}

size_t statement_normalise(enum dialect dialect, const char *sql, size_t bytes, char *text, size_t room, bool *literals)
{
    struct scan scan = {
        .begin = sql, .at = sql, .end = sql + bytes, .text = text, .room = room, .dialect = dialect};
    while (scan.at < scan.end && scan.length < room) {
        const char *begin = scan.at;
        if (scan.hidden)
            skip_plain(&scan);
        else
            copy_plain(&scan);
        if (scan.at == scan.end || scan.length == room)
            break;
        size_t prefix = take_back(&scan, begin);
        take_token(&scan, prefix);
    }
    *literals = scan.literals;
    return hide_bare_secrets(text, scan.length - (scan.length < room && ends_with_space(&scan)));
}
