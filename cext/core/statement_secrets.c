#include "core/statement_secrets.h"

#include "core/statement_calls.h"
#include "core/statement_words.h"

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
    for (const char *at = name; at < end; at++)
        if (!is_word(*at) && *at != ' ' && *at != '.')
            return false;
    return !names_secret(name, end);
}

static char *value_of_pragma(char *name, char *end)
{
    char *at = name;
    while (at < end && *at != '=' && *at != '(' && *at != ';')
        at++;
    return at == end || *at == ';' || is_harmless_pragma(name, at) ? NULL : at + 1;
}

/* What follows the name of a secret, if it is a word, or a name in quotes: that of a placeholder begins otherwise. */
static char *value_of_name(char *behind, char *end, bool signed_only)
{
    char *at = skip_blanks(behind, end);
    bool is_signed = at < end && *at == '=';
    if (!is_signed && (signed_only || at == behind))
        return NULL;
    char *value = skip_blanks(at + is_signed, end);
    bool is_bare = value < end && (is_word(*value) || strchr("\"`[$", *value));
    return !is_bare ? NULL : is_signed ? at + 1 : behind;
}

/* The value of the first word that names a secret: behind a sign or, unless `signed_only`, a space. */
static char *value_of_named(char *at, char *end, bool signed_only)
{
    while (at < end) {
        char *behind = skip_letters(at, end), *value = NULL;
        if (behind > at && names_secret(at, behind))
            value = value_of_name(behind, end, signed_only);
        if (value)
            return value;
        at = behind + 1;
    }
    return NULL;
}

/* SET in what ALTER or CREATE changes: not in an UPDATE. */
static char *value_of_set(char *at, char *end)
{
    char *set = find_word(at, end, "set");
    return set ? find_value(set, end) : NULL;
}

/* SET of its own: SET name = value. */
static char *value_of_setting(char *at, char *end)
{
    char *value = first_of(find_value(at, end), find_word(at, end, "identified"));
    return value ? value : value_of_named(at, end, false);
}

/* What SQLite's CREATE VIRTUAL TABLE gives a module: csv(password=x). */
static char *value_for_module(char *at, char *end)
{
    char *is_virtual = find_word(at, end, "virtual"), *using = is_virtual ? find_word(is_virtual, end, "using") : NULL;
    char *sign = using ? memchr(using, '=', (size_t)(end - using)) : NULL;
    return using ? first_of(sign ? sign + 1 : NULL, value_of_named(using, end, false)) : NULL;
}

/* What DuckDB's CREATE SECRET has in parentheses. */
static char *value_of_secret(char *at, char *end)
{
    static const char *const secret[] = {"secret", NULL};
    char *opening = memchr(at, '(', (size_t)(end - at));
    return opening && begins_with_one_of(at, opening, secret) ? opening + 1 : NULL;
}

/* The word behind the name of a secret. A table may have a column password, and queries compare keys. */
static char *value_of_definition(char *at, char *end)
{
    static const char *const users[] = {"user", "role", "login", NULL};
    static const char *const queries[] = {"table",     "view",    "trigger", "index", "function",
                                          "procedure", "package", "macro",   "rule",  NULL};
    if (begins_with_one_of(at, end, users))
        return value_of_named(at, end, false);
    return begins_with_one_of(at, end, queries) ? NULL : value_of_named(at, end, true);
}

/* What ALTER or CREATE says. */
static char *value_of_change(char *at, char *end)
{
    char *secret = first_of(value_of_secret(at, end), value_of_definition(at, end));
    return first_of(first_of(value_of_set(at, end), find_word(at, end, "identified")), secret);
}

/* What makes a connection says nothing else. */
static char *all_of_connect(char *at, char *end)
{
    return is_word_at(at, end, "connect") ? at + strlen("connect") : NULL;
}

/* SQLite's VACUUM INTO is followed by a value, which may be in double quotes, and a URI with a key. */
static char *value_of_vacuum(char *at, char *end)
{
    char *semicolon = memchr(at, ';', (size_t)(end - at));
    bool is_one = !semicolon || sql_has_sign(at, semicolon, "\"`[");
    return find_word(at, is_one ? end : semicolon, "into");
}

/* In statements that load, copy or open something, secrets have names. */
static char *value_of_other(char *at, char *end)
{
    bool of_query = at < end && next_word(at, end) < end && *next_word(at, end) == '(';
    static const char *const verbs[] = {"backup", "change", "copy",  "export", "import", "load",
                                        "open",   "restore", "start", "unload", "use"};
    for (size_t each = 0; each < sizeof verbs / sizeof *verbs && !of_query; each++)
        if (is_word_at(at, end, verbs[each]))
            return value_of_named(at, end, true);
    return NULL;
}

/* Where a secret begins in the statement between two places; NULL if none does. */
static char *secret_of(char *at, char *end)
{
    switch (at < end ? *at | 0x20 : 0) {
    case 's':
        return is_word_at(at, end, "set") ? value_of_setting(at, end) : value_of_other(at, end);
    case 'p':
        return is_word_at(at, end, "pragma") ? value_of_pragma(at + strlen("pragma"), end) : NULL;
    case 'a':
        if (is_word_at(at, end, "attach"))
            return first_of(find_word(at, end, "key"), value_of_named(at, end, false));
        if (is_word_at(at, end, "administer"))
            return find_word(at, end, "identified");
        return is_word_at(at, end, "alter") ? value_of_change(next_word(at, end), end) : NULL;
    case 'm':
        return is_word_at(at, end, "modify") ? value_of_change(next_word(at, end), end) : NULL;
    case 'c':
        if (is_word_at(at, end, "create"))
            return first_of(value_of_change(next_word(at, end), end), value_for_module(at, end));
        return first_of(all_of_connect(at, end), value_of_other(at, end));
    case 'g':
        return is_word_at(at, end, "grant") ? find_word(at, end, "identified") : NULL;
    case 'v':
        return is_word_at(at, end, "vacuum") ? value_of_vacuum(at, end) : NULL;
    default:
        break;
    }
    return value_of_other(at, end);
}

/* Past EXPLAIN and what says how. */
static char *explained(char *at, char *end)
{
    static const char *const how[] = {"explain", "query", "plan", "analyze", "verbose"};
    if (at == end || !is_word_at(at, end, how[0]))
        return at;
    for (size_t each = 0; each < sizeof how / sizeof *how; each++)
        if (is_word_at(at, end, how[each]))
            at = next_word(at, end);
    return at;
}

static size_t end_at(char *text, char *secret, const char *end)
{
    bool spaced = secret + 2 <= end;
    memcpy(secret, spaced ? " ?" : "?", spaced ? 2 : 1);
    return (size_t)(secret + 1 + spaced - text);
}

size_t hide_bare_secrets(enum dialect dialect, char *text, size_t length)
{
    char *end = text + length;
    for (char *at = text; at < end;) {
        char *secret = secret_of(explained(at, end), end);
        if (dialect == DIALECT_any)
            secret = first_of(secret, bare_values(at, end));
        if (secret && secret < end)
            return end_at(text, secret, end);
        char *next = memchr(at, ';', (size_t)(end - at));
        at = next ? skip_blanks(next + 1, end) : end;
    }
    return length;
}
