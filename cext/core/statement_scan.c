#define _GNU_SOURCE
#include "core/statement_scan.h"

const uint8_t statement_bytes[256] = {
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

void sql_put_more(struct scan *scan)
{
    static const char more[] = ", \u2026";
    scan->length -= ends_with_space(scan);
    put(scan, more, sizeof more - 1);
}

void sql_skip_word(struct scan *scan)
{
    while (scan->at < scan->end && is_word(*scan->at))
        scan->at++;
}

void sql_hide_rest(struct scan *scan)
{
    scan->at = scan->end;
    put_placeholder(scan);
}

bool sql_has_sign(const char *at, const char *end, const char *signs)
{
    for (; at < end; at++)
        if (*at && strchr(signs, *at))
            return true;
    return false;
}

/* Anything that may begin a text, a name or a comment in some dialect. */
const char sql_openings[] = "'\"`[$/-#\\";
