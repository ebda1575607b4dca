/* Words of a statement whose literals are hidden already. */
#pragma once

#include <string.h>
#include <strings.h>

#include "core/statement_scan.h"

/* Most words differ in the last letter already. */
static inline bool is_word_at(const char *at, const char *end, const char *word)
{
    size_t length = strlen(word);
    return (size_t)(end - at) >= length && (at[length - 1] | 0x20) == word[length - 1] &&
           strncasecmp(at, word, length) == 0 && (at + length == end || !is_word(at[length]));
}

static inline char *skip_blanks(char *at, char *end)
{
    while (at < end && *at == ' ')
        at++;
    return at;
}

static inline char *skip_letters(char *at, char *end)
{
    while (at < end && is_word(*at))
        at++;
    return at;
}

static inline char *next_word(char *at, char *end)
{
    return skip_blanks(skip_letters(at, end), end);
}

/* Past the word, NULL if it is not there. */
char *find_word(char *at, char *end, const char *word);

/* Is one of these, a list that ends with NULL, among the first words? */
bool begins_with_one_of(char *at, char *end, const char *const *words);

/* Does a word between the two places name what opens doors? */
bool names_secret(const char *name, const char *end);

/* The earlier place; NULL is none. */
static inline char *first_of(char *one, char *other)
{
    return !one || (other && other < one) ? other : one;
}
