#define _GNU_SOURCE
#include "core/redact.h"

#include <regex.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

/* Searching takes time in the square of a text's length, so only this many bytes are searched at once; testing
   whether there is a match takes time in proportion to the length. */
enum { AT_ONCE_BYTES = 1024, LONGEST_EXPRESSION = 2048 };

static struct {
    regex_t expression, anywhere;
    bool compiled;
} chosen;

static const char *compile(regex_t *into, const char *expression, int flags)
{
    static char wrong[256];
    int failed = regcomp(into, expression, REG_EXTENDED | flags);
    if (failed)
        regerror(failed, into, wrong, sizeof wrong);
    return failed ? wrong : NULL;
}

const char *redact_choose(const char *expression)
{
    char anywhere[LONGEST_EXPRESSION + 8] = "^.*(";
    const char *wrong;
    if (chosen.compiled) {
        regfree(&chosen.expression);
        regfree(&chosen.anywhere);
    }
    chosen.compiled = false;
    if (!*expression)
        return NULL;
    if (strlen(expression) > LONGEST_EXPRESSION)
        return "too long";
    if ((wrong = compile(&chosen.expression, expression, 0)))
        return wrong;
    if ((wrong = compile(&chosen.anywhere, strcat(strcat(anywhere, expression), ")"), REG_NOSUB))) {
        regfree(&chosen.expression);
        return wrong;
    }
    chosen.compiled = true;
    return NULL;
}

bool redact_is_on(void)
{
    return chosen.compiled;
}

/* The text with `?` for what no expression matches: zero bytes, and invalid characters of the user's encoding. */
static char *legible(const char *text, size_t bytes)
{
    char *copy = malloc(bytes);
    mbstate_t state = {0};
    for (size_t at = 0, length; copy && at < bytes; at += length) {
        length = (unsigned char)text[at] < 128 ? 1 : mbrlen(text + at, bytes - at, &state);
        bool is_none = length == 0 || length > bytes;
        length = is_none ? 1 : length;
        memcpy(copy + at, text + at, length);
        if (is_none || !text[at])
            copy[at] = '?';
        if (is_none)
            state = (mbstate_t){0};
    }
    return copy;
}

static bool is_anywhere(const char *text, size_t bytes)
{
    regmatch_t match = {.rm_so = 0, .rm_eo = (regoff_t)bytes};
    return regexec(&chosen.anywhere, text, 0, &match, REG_STARTEND) == 0;
}

/* A part of a text: as it was, as it is searched, and from where to where. */
struct part {
    const char *text, *searched;
    size_t from, to, bytes;
};

/* The next match from `from` on that is not empty. */
static bool find(const struct part *part, size_t from, regmatch_t *match)
{
    while (from < part->to) {
        int flags = REG_STARTEND | (from ? REG_NOTBOL : 0) | (part->to < part->bytes ? REG_NOTEOL : 0);
        *match = (regmatch_t){.rm_so = (regoff_t)from, .rm_eo = (regoff_t)part->to};
        if (regexec(&chosen.expression, part->searched, 1, match, flags) != 0)
            return false;
        if (match->rm_eo > match->rm_so)
            return true;
        from = (size_t)match->rm_eo + 1;
    }
    return false;
}

/* Write what may be kept of a part; returns its length, at most the part's. */
static size_t keep_part(const struct part *part, char *left)
{
    regmatch_t match;
    size_t from = part->from, length = 0;
    while (find(part, from, &match)) {
        size_t begin = (size_t)match.rm_so;
        memcpy(left + length, part->text + from, begin - from);
        length += begin - from;
        left[length++] = '?';
        from = (size_t)match.rm_eo;
    }
    memcpy(left + length, part->text + from, part->to - from);
    return length + part->to - from;
}

/* The same of a long text, line by line; of a line that is long itself and has a match nothing is kept. */
static size_t keep_lines(const char *text, const char *searched, size_t bytes, char *left)
{
    size_t length = 0;
    struct part line = {.text = text, .searched = searched, .bytes = bytes};
    for (; line.from < bytes; line.from = line.to) {
        const char *end = memchr(text + line.from, '\n', bytes - line.from);
        line.to = end ? (size_t)(end - text) + 1 : bytes;
        if (line.to - line.from > AT_ONCE_BYTES && is_anywhere(searched + line.from, line.to - line.from)) {
            left[length++] = '?';
            if (end)
                left[length++] = '\n';
        } else if (line.to - line.from > AT_ONCE_BYTES) {
            memcpy(left + length, text + line.from, line.to - line.from);
            length += line.to - line.from;
        } else {
            length += keep_part(&line, left + length);
        }
    }
    return length;
}

/* Is there still something, which goes over the ends of lines? */
static bool is_left(const char *text, size_t bytes)
{
    char *searched = legible(text, bytes);
    bool is = !searched || is_anywhere(searched, bytes);
    free(searched);
    return is;
}

static size_t keep(const char *text, const char *searched, size_t bytes, char *left)
{
    if (bytes <= AT_ONCE_BYTES)
        return keep_part(&(struct part){.text = text, .searched = searched, .to = bytes, .bytes = bytes}, left);
    size_t length = keep_lines(text, searched, bytes, left);
    if (is_left(left, length))
        length = (size_t)(stpcpy(left, "?") - left);
    return length;
}

char *redact(const char *text, size_t *bytes)
{
    if (!chosen.compiled || !*bytes)
        return NULL;
    size_t whole = *bytes;
    char *searched = legible(text, whole), *left = NULL;
    bool any = !searched || is_anywhere(searched, whole);
    if (any) {
        left = searched ? malloc(whole + 1) : NULL;
        *bytes = left ? keep(text, searched, whole, left) : 0;
        if (left && *bytes == whole && memcmp(left, text, whole) == 0) { /* the match is empty */
            free(left);
            left = NULL;
        }
    }
    free(searched);
    return left;
}
