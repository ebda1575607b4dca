/* Lists and rows of values, of which only the first is kept. */
#define _GNU_SOURCE
#include "core/statement_scan.h"

/* ?, ?1, $1, :name, @name, %s, %(name)s: what the program fills in. */
static bool take_program_placeholder(struct scan *scan)
{
    const char *begin = scan->at++;
    bool named = *begin == '%' && peek(scan, 0) == '(';
    if (is_digit(peek(scan, 0)) && !sql_numbers_placeholder(scan))
        return false;
    scan->at += named;
    sql_skip_word(scan);
    if (named && (peek(scan, 0) != ')' || peek(scan, 1) != 's'))
        return false;
    scan->at += 2 * named;
    put_from(scan, begin);
    return true;
}

/* A literal, with its sign, or a placeholder; false if it is neither. */
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
        sql_skip_number(scan);
    } else if (peek(scan, 0) == '"') {
        sql_take_double_quoted(scan);
        return true;
    } else if (peek(scan, 0) != '$' || !sql_skip_dollar_quoted(scan)) {
        const char *prefix = scan->at;
        sql_skip_word(scan);
        if (peek(scan, 0) != '\'')
            return false;
        sql_skip_text(scan, '\'', prefix);
    }
    put_placeholder(scan);
    return true;
}

/* The type that a value is cast to: ::INTEGER, ::timestamp with time zone. */
static void take_cast(struct scan *scan)
{
    if (peek(scan, 0) != ':' || peek(scan, 1) != ':' || !is_word(peek(scan, 2)) || is_digit(peek(scan, 2)))
        return;
    put(scan, scan->at, 2);
    scan->at += 2;
    while (scan->at < scan->end && is_word(*scan->at)) {
        const char *begin = scan->at;
        sql_skip_word(scan);
        put_from(scan, begin);
        skip_spaces(scan);
        if (is_word(peek(scan, 0)) && !is_digit(peek(scan, 0)))
            put_space(scan);
        else
            break;
    }
}

/* The next value of a list; false if it is not a value, or only a part of one: 2 + x. */
static bool take_value(struct scan *scan, char closing)
{
    skip_spaces(scan);
    if (scan->at >= scan->end || !take_plain_value(scan))
        return false;
    take_cast(scan);
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
        sql_put_more(scan);
}

/* Does a row of VALUES begin here, or of IN ((1, 2), (3, 4))? */
static bool begins_row(const struct scan *scan)
{
    size_t end = before_space(scan, scan->length);
    if (end && scan->text[end - 1] == '(')
        return word_is(scan, end - 1, "in");
    return word_is(scan, end, "values");
}

void sql_take_opening(struct scan *scan)
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
void sql_take_closing(struct scan *scan)
{
    put(scan, scan->at++, 1);
    if (scan->row_depth == 0 || --scan->row_depth)
        return;
    bool more = skip_to_row(scan);
    if (more && !scan->hidden)
        sql_put_more(scan);
    scan->row_depth = more;
    scan->hidden = more;
}

void sql_take_bracket(struct scan *scan)
{
    bool list = word_is(scan, scan->length, "array"), any = scan->dialect == DIALECT_any;
    if (scan->dialect == DIALECT_sqlite || (any && sql_is_plain_name(scan, ']'))) {
        sql_take_name(scan, ']');
    } else if (any && !list && sql_is_doubtful_bracket(scan)) {
        sql_hide_rest(scan);
    } else {
        put(scan, scan->at++, 1);
        if (list)
            take_list(scan, ']');
    }
}
