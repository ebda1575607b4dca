#include "core/statement.h"

#include "core/statement_savepoints.h"
#include "core/statement_scan.h"
#include "core/statement_secrets.h"

enum { PLACEHOLDER_DIGITS = 5 }; /* of $65535, the last of PostgreSQL's; $1.50 is money of SQL Server's */

/* --- numbers: there are so many that a call of another file for each would be noticed */

/* With its exponent: 1e-10. */
void sql_skip_number(struct scan *scan)
{
    for (scan->at++; scan->at < scan->end; scan->at++) {
        char c = *scan->at;
        bool sign = (c == '+' || c == '-') && (scan->at[-1] | 0x20) == 'e' && is_digit(peek(scan, 1));
        if (!is_word(c) && c != '.' && !sign)
            break;
    }
}

bool sql_numbers_placeholder(const struct scan *scan)
{
    ptrdiff_t before = scan->at - scan->begin;
    char sign = before > 0 ? scan->at[-1] : 0;
    if (sign == '?' || sign == '$')
        return true;
    bool may_be = scan->dialect != DIALECT_postgresql && scan->dialect != DIALECT_mysql; /* a[ :1] is a subscript */
    return may_be && sign == ':' && (before < 2 || is_space(scan->at[-2]) || scan->at[-2] == '(' || scan->at[-2] == ',' ||
                           scan->at[-2] == '=');
}

static void take_number(struct scan *scan)
{
    const char *begin = scan->at;
    bool placeholder = sql_numbers_placeholder(scan);
    sql_skip_number(scan);
    if (placeholder && scan->at - begin <= PLACEHOLDER_DIGITS && !memchr(begin, '.', (size_t)(scan->at - begin))) {
        put_from(scan, begin);
        return;
    }
    put_placeholder(scan);
    if (scan->noted && !placeholder)
        sql_note_number(scan, begin);
}

static void take_text(struct scan *scan, const char *prefix)
{
    const char *quote = scan->at;
    sql_skip_text(scan, '\'', prefix);
    put_placeholder(scan);
    if (scan->noted)
        sql_note_text(scan, quote);
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
        unsigned byte = statement_bytes[(unsigned char)*at];
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
        unsigned byte = statement_bytes[(unsigned char)*scan->at];
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
        sql_take_opening(scan);
    } else if (c == ')') {
        sql_take_closing(scan);
    } else if (c == '"') {
        sql_take_double_quoted(scan);
    } else if (c == '`') {
        sql_take_backtick(scan);
    } else if (c == '[') {
        sql_take_bracket(scan);
    } else if (c == '/' && next == '*') {
        sql_take_block_comment(scan);
    } else if (c == '$' && !is_digit(next) && sql_skip_dollar_quoted(scan)) {
        put_placeholder(scan);
    } else if (c == '/' && next == '/' && scan->dialect == DIALECT_any) {
        sql_hide_rest(scan); /* a comment of Snowflake and Cassandra, a division of DuckDB */
    } else if ((c != '-' && c != '#') || !sql_take_comment(scan)) {
        put(scan, scan->at++, 1);
    }
}

static inline void take_token(struct scan *scan, size_t prefix)
{
    if (*scan->at == '\'') {
        take_text(scan, scan->at - prefix);
    } else if (is_digit(*scan->at) || *scan->at == '.') {
        take_number(scan);
    } else {
        take_mark(scan);
    }
}

size_t statement_normalise_noting(enum dialect dialect, const char *sql, size_t bytes, char *text, size_t room,
                                  bool *literals, struct statement_literals *noted)
{
    struct scan scan = {
        .begin = sql, .at = sql, .end = sql_certain_end(dialect, sql, sql + bytes), .text = text, .room = room,
        .dialect = dialect, .noted = noted};
    bool is_certain = scan.end == sql + bytes;
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
    if (!is_certain)
        put_placeholder(&scan);
    *literals = scan.literals;
    size_t length = hide_bare_secrets(dialect, text, scan.length - (scan.length < room && ends_with_space(&scan)));
    return hide_made_savepoint(text, length, literals);
}

size_t statement_normalise(enum dialect dialect, const char *sql, size_t bytes, char *text, size_t room, bool *literals)
{
    return statement_normalise_noting(dialect, sql, bytes, text, room, literals, NULL);
}
