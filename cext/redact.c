#define _GNU_SOURCE
#include "redact.h"

#include <regex.h>
#include <stdlib.h>
#include <string.h>

static struct {
    regex_t expression;
    bool compiled;
} chosen;

const char *redact_choose(const char *expression)
{
    static char wrong[256];
    if (chosen.compiled)
        regfree(&chosen.expression);
    chosen.compiled = false;
    if (!*expression)
        return NULL;
    int failed = regcomp(&chosen.expression, expression, REG_EXTENDED);
    if (failed) {
        regerror(failed, &chosen.expression, wrong, sizeof wrong);
        return wrong;
    }
    chosen.compiled = true;
    return NULL;
}

bool redact_is_on(void)
{
    return chosen.compiled;
}

/* The next match from `from` on that is not empty. */
static bool find(const char *text, size_t from, size_t bytes, regmatch_t *match)
{
    while (from < bytes) {
        *match = (regmatch_t){.rm_so = (regoff_t)from, .rm_eo = (regoff_t)bytes};
        if (regexec(&chosen.expression, text, 1, match, REG_STARTEND | (from ? REG_NOTBOL : 0)) != 0)
            return false;
        if (match->rm_eo > match->rm_so)
            return true;
        from = (size_t)match->rm_eo + 1;
    }
    return false;
}

char *redact(const char *text, size_t *bytes)
{
    regmatch_t match;
    if (!chosen.compiled || !find(text, 0, *bytes, &match))
        return NULL;
    char *left = malloc(*bytes); /* a match is no shorter than what stands for it */
    size_t from = 0, length = 0, whole = *bytes;
    *bytes = 0;
    if (!left)
        return NULL;
    do {
        size_t begin = (size_t)match.rm_so;
        memcpy(left + length, text + from, begin - from);
        length += begin - from;
        left[length++] = '?';
        from = (size_t)match.rm_eo;
    } while (find(text, from, whole, &match));
    memcpy(left + length, text + from, whole - from);
    *bytes = length + whole - from;
    return left;
}
