#include "core/statement_calls.h"

#include "core/statement_words.h"

/* Past @name =, where the result goes. */
static char *skip_result(char *at, char *end)
{
    char *sign = at < end && *at == '@' ? skip_blanks(skip_letters(at + 1, end), end) : end;
    return sign < end && *sign == '=' ? skip_blanks(sign + 1, end) : at;
}

/* A name with its dots and brackets. */
static char *skip_name(char *at, char *end)
{
    while (at < end && (is_word(*at) || sql_has_sign(at, at + 1, ".[]#")))
        at++;
    return at;
}

/* Does a word stand there that is neither the name of a parameter nor of a variable? */
static bool has_bare_word(char *at, char *end)
{
    static const char *const plain[] = {"null", "default", "output", "out"};
    bool bare = false;
    while (at < end && !bare) {
        char *behind = skip_letters(at, end);
        bool is_plain = behind == at || sql_has_sign(at - 1, at, "@:$%");
        for (size_t each = 0; each < sizeof plain / sizeof *plain && !is_plain; each++)
            is_plain = is_word_at(at, end, plain[each]);
        bare = !is_plain;
        at = behind + 1;
    }
    return bare;
}

/* Behind the name of a procedure; NULL if all that follows are placeholders and the like. */
static char *values_for(char *name, char *end)
{
    char *behind = skip_name(name, end);
    return behind > name && behind < end && has_bare_word(behind + 1, end) ? behind : NULL;
}

/* sp_name and dbo.name at the beginning of a statement are calls. */
static bool is_procedure(const char *at, const char *behind)
{
    bool is_systems = behind - at > 3 && (!strncasecmp(at, "sp_", 3) || !strncasecmp(at, "xp_", 3));
    return is_systems || memchr(at, '.', (size_t)(behind - at)) || (at < behind && *at == '[');
}

static char *values_for_procedure(char *at, char *end)
{
    static const char *const rights[] = {"grant", "revoke", "deny", "comment", NULL};
    if (is_procedure(at, skip_name(at, end)))
        return values_for(at, end);
    char *execute = first_of(find_word(at, end, "exec"), find_word(at, end, "execute"));
    if (!execute || begins_with_one_of(at, end, rights))
        return NULL;
    return values_for(skip_result(skip_blanks(execute, end), end), end);
}

/* Behind INSERT … FORMAT name of ClickHouse is data. */
static char *inline_data(char *at, char *end)
{
    char *format = is_word_at(at, end, "insert") ? find_word(at, end, "format") : NULL;
    char *name = format ? skip_blanks(format, end) : NULL;
    return name && skip_letters(name, end) > name ? skip_letters(name, end) : NULL;
}

char *bare_values(char *at, char *end)
{
    return first_of(values_for_procedure(at, end), inline_data(at, end));
}
