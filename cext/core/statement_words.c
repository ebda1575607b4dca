#include "core/statement_words.h"

enum { FIRST_WORDS = 6 }; /* CREATE OR REPLACE TEMPORARY RECURSIVE VIEW is the longest beginning */

char *find_word(char *at, char *end, const char *word)
{
    for (bool begins = true; at < end; begins = !is_word(*at++))
        if (begins && is_word_at(at, end, word))
            return at + strlen(word);
    return NULL;
}

bool begins_with_one_of(char *at, char *end, const char *const *words)
{
    for (unsigned count = 0; count < FIRST_WORDS && at < end; count++) {
        for (const char *const *each = words; *each; each++)
            if (is_word_at(at, end, *each))
                return true;
        at = next_word(at, end);
    }
    return false;
}

bool names_secret(const char *name, const char *end)
{
    static const char *const parts[] = {"key", "pass", "pwd", "salt", "secret", "token", "credential"};
    for (const char *at = name; at < end; at++)
        for (size_t each = 0; each < sizeof parts / sizeof *parts; each++)
            if ((size_t)(end - at) >= strlen(parts[each]) && strncasecmp(at, parts[each], strlen(parts[each])) == 0)
                return true;
    return false;
}
