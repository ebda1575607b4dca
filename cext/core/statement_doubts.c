/* What may be a literal in a dialect that is not known. */
#define _GNU_SOURCE
#include "core/statement_scan.h"

static const char byte_order_mark[] = "\xEF\xBB\xBF";

static bool is_hexadecimal(char c)
{
    return is_digit(c) || ((c | 0x20) >= 'a' && (c | 0x20) <= 'f');
}

/* Without quotes, as Cassandra has them. */
static bool is_bare_uuid(const char *begin, const char *at, const char *end)
{
    if (end - at < UUID_BYTES || (at > begin && (is_word(at[-1]) || sql_has_sign(at - 1, at, "'\"-"))))
        return false;
    for (size_t index = 0; index < UUID_BYTES; index++) {
        bool dash = index == 8 || index == 13 || index == 18 || index == 23;
        if (dash ? at[index] != '-' : !is_hexadecimal(at[index]))
            return false;
    }
    return true;
}

/* One of \u00a2 to \u00a5, or of \u20a0 to \u20bf, before a digit: money of SQL Server's. */
static bool is_money(const char *at, const char *end)
{
    const unsigned char *bytes = (const unsigned char *)at;
    if (end - at >= 3 && bytes[0] == 0xC2)
        return bytes[1] >= 0xA2 && bytes[1] <= 0xA5 && is_digit(at[2]);
    return end - at >= 4 && bytes[0] == 0xE2 && bytes[1] == 0x82 && bytes[2] >= 0xA0 && is_digit(at[3]);
}

/* \u2018 to \u201f: ClickHouse takes them for quotes. */
static bool is_curly_quote(const char *at, const char *end)
{
    const unsigned char *bytes = (const unsigned char *)at;
    return end - at >= 3 && bytes[0] == 0xE2 && bytes[1] == 0x80 && bytes[2] >= 0x98 && bytes[2] <= 0x9F;
}

static const char *certain_end_of_any(const char *sql, const char *end)
{
    for (const char *at = sql; at < end; at++) {
        bool high = (unsigned char)*at >= 0x80;
        if (high ? is_money(at, end) || is_curly_quote(at, end) : is_hexadecimal(*at) && is_bare_uuid(sql, at, end))
            return at;
    }
    return end;
}

const char *sql_certain_end(enum dialect dialect, const char *sql, const char *end)
{
    if (dialect != DIALECT_sqlite && dialect != DIALECT_any)
        return end;
    const char *mark = memmem(sql, (size_t)(end - sql), byte_order_mark, sizeof byte_order_mark - 1);
    end = mark ? mark : end;
    return dialect == DIALECT_any ? certain_end_of_any(sql, end) : end;
}

bool sql_is_tripled(const struct scan *scan)
{
    char quote = *scan->at;
    return peek(scan, 1) == quote && peek(scan, 2) == quote;
}

const char *sql_tripled_end(const char *at, const char *end)
{
    const char tripled[] = {*at, *at, *at};
    const char *close = memmem(at + 3, (size_t)(end - at - 3), tripled, sizeof tripled);
    return close ? close + sizeof tripled : NULL;
}
