/* Which literals of a statement others may stand in place of without a change of anything else: all that looks ahead,
   back or at the whole of a statement has to find the same, whichever such literal it comes across. */
#define _GNU_SOURCE
#include "core/statement_scan.h"

#include "core/statement_pattern.h"

/* Ends a plain text: quotes, what begins or ends names, comments and other texts, and the first bytes of characters that
   end what is certain of a statement (a byte order mark, curly quotes, currencies). */
static const bool ends_plain_text[256] = {
    ['\t' ... '\r'] = true, ['"' ... '$'] = true, ['\'' ... ')'] = true, ['/'] = true,  ['[' ... ']'] = true,
    ['`'] = true,           [0xC2] = true,        [0xE2] = true,         [0xEF] = true,
};

/* A longer text may hold a UUID that does not begin at its quote, and which is then taken for one without quotes. */
const char *sql_plain_text_end(const char *begin, const char *end)
{
    const char *at = begin;
    while (at < end && !ends_plain_text[(unsigned char)*at])
        at++;
    bool may_hold_uuid = at - begin > UUID_BYTES && memchr(begin, '-', (size_t)(at - begin));
    return may_hold_uuid ? NULL : at;
}

const char *sql_plain_number_end(const char *begin, const char *end)
{
    const char *at = begin;
    while (at < end && is_digit(*at))
        at++;
    return at > begin ? at : NULL;
}

static void note(struct scan *scan, const char *begin, const char *end, bool is_text)
{
    struct statement_literals *noted = scan->noted;
    if (noted->count < PATTERN_LITERALS) {
        noted->at[noted->count].begin = (uint16_t)(begin - scan->begin);
        noted->at[noted->count].end = (uint16_t)(end - scan->begin);
        noted->at[noted->count].is_text = is_text;
    }
    noted->count += noted->count <= PATTERN_LITERALS;
}

/* Another number in its place would be part of a UUID, or cease to be. */
static bool is_beside_dash(const struct scan *scan, const char *begin)
{
    bool behind_one = begin - scan->begin >= 2 && begin[-1] == '-' && is_word(begin[-2]);
    return behind_one || peek(scan, 0) == '-';
}

void sql_note_number(struct scan *scan, const char *begin)
{
    if (sql_plain_number_end(begin, scan->at) == scan->at && !is_beside_dash(scan, begin))
        note(scan, begin, scan->at, false);
}

void sql_note_text(struct scan *scan, const char *quote)
{
    bool may_be_q_quoted = quote > scan->begin && (quote[-1] | 0x20) == 'q';
    if (!may_be_q_quoted && sql_plain_text_end(quote + 1, scan->end) == scan->at - 1)
        note(scan, quote + 1, scan->at - 1, true);
}
