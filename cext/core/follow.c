#define _GNU_SOURCE
#include "core/follow.h"

#include <regex.h>
#include <string.h>

static struct {
    enum { FOLLOW_ON, FOLLOW_OFF, FOLLOW_PATTERN } mode;
    regex_t pattern;
    bool compiled, command;
} chosen;

static bool matches(const char *text)
{
    return regexec(&chosen.pattern, text, 0, NULL, 0) == 0;
}

const char *follow_choose(const char *text, const char *command)
{
    static char wrong[256];
    if (chosen.compiled)
        regfree(&chosen.pattern);
    chosen.compiled = false;
    chosen.mode = strcmp(text, "off") == 0 ? FOLLOW_OFF : *text == '=' ? FOLLOW_PATTERN : FOLLOW_ON;
    if (chosen.mode != FOLLOW_PATTERN)
        return NULL;
    int failed = regcomp(&chosen.pattern, text + 1, REG_EXTENDED | REG_NOSUB);
    if (failed) {
        regerror(failed, &chosen.pattern, wrong, sizeof wrong);
        chosen.mode = FOLLOW_ON;
        return wrong;
    }
    chosen.compiled = true;
    chosen.command = matches(command);
    return NULL;
}

bool follow_matches(const char *lineage)
{
    return chosen.mode == FOLLOW_ON || (chosen.mode == FOLLOW_PATTERN && (chosen.command || matches(lineage)));
}

bool follow_is_off(void)
{
    return chosen.mode == FOLLOW_OFF;
}
