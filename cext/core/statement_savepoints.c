#include "core/statement_savepoints.h"

#include "core/statement_words.h"

/* The place behind the word; `at` itself if another word is there. */
static char *past(char *at, char *end, const char *word)
{
    return is_word_at(at, end, word) ? next_word(at, end) : at;
}

/* Where the name begins in a statement that sets, releases or rolls back to a savepoint; NULL in others. */
static char *name_of_savepoint(char *text, char *end)
{
    if (is_word_at(text, end, "rollback")) {
        char *to = past(past(next_word(text, end), end, "work"), end, "transaction");
        return is_word_at(to, end, "to") ? past(next_word(to, end), end, "savepoint") : NULL;
    }
    char *name = past(past(text, end, "release"), end, "savepoint");
    return name > text ? name : NULL;
}

static char *name_end(char *name, char *end)
{
    if (name == end || (*name != '"' && *name != '`'))
        return skip_letters(name, end);
    char *closing = memchr(name + 1, *name, (size_t)(end - name - 1));
    return closing ? closing + 1 : name;
}

size_t hide_made_savepoint(char *text, size_t length, bool *made)
{
    char *end = text + length, *name = name_of_savepoint(text, end), *behind = name ? name_end(name, end) : NULL;
    char *digit = name;
    while (digit < behind && !is_digit(*digit))
        digit++;
    if (digit == behind)
        return length;
    *made = true;
    *name = '?';
    memmove(name + 1, behind, (size_t)(end - behind));
    return length - (size_t)(behind - name) + 1;
}
