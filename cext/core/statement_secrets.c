#include "core/statement_secrets.h"

#include <stdbool.h>
#include <string.h>
#include <strings.h>

static bool is_in_word(char c)
{
    return (c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z') || c == '_' || (unsigned char)c >= 0x80;
}

/* Most words differ in the last letter already. */
static inline bool is_word_at(const char *at, const char *end, const char *word)
{
    size_t length = strlen(word);
    return (size_t)(end - at) >= length && (at[length - 1] | 0x20) == word[length - 1] &&
           strncasecmp(at, word, length) == 0 && (at + length == end || !is_in_word(at[length]));
}

/* Past the word, NULL if it is not there. */
static char *find_word(char *at, char *end, const char *word)
{
    for (bool begins = true; at < end; begins = !is_in_word(*at++))
        if (begins && is_word_at(at, end, word))
            return at + strlen(word);
    return NULL;
}

/* Skip the sign or the word before a value. */
static char *find_value(char *at, char *end)
{
    char *sign = memchr(at, '=', (size_t)(end - at)), *to = find_word(at, end, "to");
    if (sign && (!to || sign < to))
        return sign + 1;
    return to;
}

/* The name of a pragma that may be kept with its value; a name in quotes may be that of a key. */
static bool is_harmless_pragma(const char *name, const char *end)
{
    static const char *const secrets[] = {"key", "pass", "salt", "secret"};
    for (const char *at = name; at < end; at++) {
        if (!is_in_word(*at) && *at != ' ' && *at != '.')
            return false;
        for (size_t each = 0; each < sizeof secrets / sizeof *secrets; each++)
            if ((size_t)(end - at) >= strlen(secrets[each]) && strncasecmp(at, secrets[each], strlen(secrets[each])) == 0)
                return false;
    }
    return true;
}

static char *value_of_pragma(char *name, char *end)
{
    char *at = name;
    while (at < end && *at != '=' && *at != '(' && *at != ';')
        at++;
    return at == end || *at == ';' || is_harmless_pragma(name, at) ? NULL : at + 1;
}

/* SET in what ALTER or CREATE changes: not in an UPDATE. */
static char *value_of_set(char *at, char *end)
{
    char *set = find_word(at, end, "set");
    return set ? find_value(set, end) : NULL;
}

static char *first_of(char *one, char *other)
{
    return !one || (other && other < one) ? other : one;
}

/* What SQLite's CREATE VIRTUAL TABLE gives a module: csv(password=x). */
static char *value_for_module(char *at, char *end)
{
    char *is_virtual = find_word(at, end, "virtual"), *using = is_virtual ? find_word(is_virtual, end, "using") : NULL;
    char *sign = using ? memchr(using, '=', (size_t)(end - using)) : NULL;
    return sign ? sign + 1 : NULL;
}

/* PASSWORD in what makes or changes a user; a text behind it is hidden already, a table may have such a column. */
static char *value_of_password(char *at, char *end)
{
    while (at < end && is_in_word(*at))
        at++;
    while (at < end && *at == ' ')
        at++;
    bool is_of_user = is_word_at(at, end, "user") || is_word_at(at, end, "role") || is_word_at(at, end, "login");
    char *value = is_of_user ? find_word(at, end, "password") : NULL, *word = value;
    while (word && word < end && *word == ' ')
        word++;
    return word && word < end && is_in_word(*word) ? value : NULL;
}

/* What ALTER or CREATE says. */
static char *value_of_change(char *at, char *end)
{
    return first_of(first_of(value_of_set(at, end), find_word(at, end, "identified")), value_of_password(at, end));
}

/* Where a secret begins in the statement between two places; NULL if none does. */
static char *secret_of(char *at, char *end)
{
    char *found;
    switch (at < end ? *at | 0x20 : 0) {
    case 's':
        return is_word_at(at, end, "set") ? first_of(find_value(at, end), find_word(at, end, "identified")) : NULL;
    case 'p':
        return is_word_at(at, end, "pragma") ? value_of_pragma(at + strlen("pragma"), end) : NULL;
    case 'e':
        found = is_word_at(at, end, "explain") ? find_word(at, end, "pragma") : NULL;
        return found ? value_of_pragma(found, end) : NULL;
    case 'a':
        if (is_word_at(at, end, "attach"))
            return find_word(at, end, "key");
        if (is_word_at(at, end, "administer"))
            return find_word(at, end, "identified");
        return is_word_at(at, end, "alter") ? value_of_change(at, end) : NULL;
    case 'c':
        return is_word_at(at, end, "create") ? first_of(value_of_change(at, end), value_for_module(at, end)) : NULL;
    case 'g':
        return is_word_at(at, end, "grant") ? find_word(at, end, "identified") : NULL;
    default:
        return NULL;
    }
}

size_t hide_bare_secrets(char *text, size_t length)
{
    char *end = text + length;
    for (char *at = text; at < end;) {
        char *secret = secret_of(at, end);
        if (secret && secret < end) {
            bool spaced = secret + 2 <= end;
            memcpy(secret, spaced ? " ?" : "?", spaced ? 2 : 1);
            return (size_t)(secret + 1 + spaced - text);
        }
        char *next = memchr(at, ';', (size_t)(end - at));
        for (at = next ? next + 1 : end; at < end && *at == ' ';)
            at++;
    }
    return length;
}
