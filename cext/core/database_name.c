#include "core/database_name.h"

#include <stdbool.h>
#include <string.h>
#include <strings.h>

#include "core/detail_levels.h"

/* Whether a word like `password` is the end of what is before a sign. */
static bool is_name_of_secret(const char *text, const char *sign)
{
    static const char *const words[] = {"password", "passwd", "pass", "passphrase", "pwd", "pw", "key", "secret", "token"};
    for (size_t each = 0; each < sizeof words / sizeof *words; each++) {
        size_t bytes = strlen(words[each]);
        if ((size_t)(sign - text) >= bytes && strncasecmp(sign - bytes, words[each], bytes) == 0)
            return true;
    }
    return false;
}

/* A path may have `=` in it, as in /data/year=2024/a.db; a connection string has a name and perhaps a password. */
static bool has_secret(const char *text)
{
    const char *name = text;
    for (const char *sign = strchr(text, '='); sign; name = sign + 1, sign = strchr(name, '=')) {
        const char *end = sign;
        while (end > name && strchr(" \t\r\n", end[-1]))
            end--;
        if (is_name_of_secret(name, end))
            return true;
    }
    return false;
}

/* An SQLite URI with a host, which SQLite refuses, and perhaps a user and a password. */
static bool has_host(const char *text)
{
    return strncmp(text, "file://", 7) == 0 && text[7] != '/' && strncmp(text + 7, "localhost/", 10) != 0;
}

/* A user and a password, also without a scheme: u:password@host. */
static bool has_user(const char *text)
{
    const char *colon = strchr(text, ':');
    return colon && strchr(colon, '@');
}

/* Without the parameters of a URI, which may have a key; nothing of what is no path. */
static size_t length_of_path(const char *text, size_t bytes)
{
    if (strncmp(text, "file:", 5) == 0)
        return has_host(text) ? 0 : strcspn(text, "?#");
    const char *mark = strchr(text, '?'), *parameter = mark ? strchr(mark, '=') : NULL;
    bool is_other = strstr(text, "://") || has_user(text) || has_secret(text);
    return is_other ? 0 : parameter ? (size_t)(mark - text) : bytes;
}

uint32_t database_intern(const char *database)
{
    size_t kept = length_of_path(database, strlen(database));
    return kept ? path_intern(KIND_db, database, kept) : 0;
}
