#define _GNU_SOURCE
#include "core/filter_rules.h"

#include <stdlib.h>
#include <string.h>

#include "core/interning.h"
#include "core/open_file.h"

enum { FILTER_BYTES = 64 * 1024 };

static struct filter_rules both[2], *in_force = both;

const struct filter_rules *rules_in_force(void)
{
    return __atomic_load_n(&in_force, __ATOMIC_ACQUIRE);
}

static struct filter_rules *not_in_force(void)
{
    return in_force == both ? both + 1 : both;
}

/* --- reading them */

static bool take_class(const char *word, enum filtered_by *by)
{
#define WORD_OF_FILTERED(name) #name,
    static const char *const words[] = {FILTERED_BY(WORD_OF_FILTERED)};
    for (unsigned each = 0; each < FILTER_CLASSES; each++)
        if (strcmp(word, words[each]) == 0) {
            *by = (enum filtered_by)each;
            return true;
        }
    return false;
}

static bool take_text(char text[FILTER_TEXT], const char *given)
{
    size_t bytes = given ? strlen(given) : 0;
    if (bytes == 0 || bytes >= FILTER_TEXT)
        return false;
    memcpy(text, given, bytes + 1);
    return true;
}

/* A line `+word<tab>value<tab>…`; what means nothing is left out. */
static void take_rule(struct filter_rules *rules, char *line)
{
    char *rest = NULL, *word = strtok_r(line, "\t", &rest), *value = strtok_r(NULL, "\t", &rest);
    char *second = strtok_r(NULL, "\t", &rest), *third = strtok_r(NULL, "\t", &rest);
    struct rule *rule = &rules->rules[rules->count];
    if (!word || rules->count == FILTER_RULES || !take_class(word + 1, &rule->by) || !take_text(rule->text, value))
        return;
    rule->leaves_out = *word == '-';
    rule->more[0] = 0;
    rule->first = strtoull(rule->by == BY_line && second ? second : value, NULL, 10);
    rule->last = third ? strtoull(third, NULL, 10) : rule->first;
    if (second && !take_text(rule->more, second))
        return;
    rule->number = rule->by == BY_transaction ? string_intern_held(value, strlen(value)) : 0;
    rules->count++;
}

static void take_blocks(struct filter_rules *rules)
{
    rules->skip = rules->from_ns = 0;
    rules->keep = rules->to_ns = UINT64_MAX;
    for (unsigned each = 0; each < rules->count; each++) {
        const struct rule *rule = &rules->rules[each];
        uint64_t *places[FILTER_CLASSES] = {
            [BY_skip] = &rules->skip, [BY_keep] = &rules->keep, [BY_from] = &rules->from_ns, [BY_to] = &rules->to_ns};
        if (places[rule->by])
            *places[rule->by] = rule->first;
    }
}

static void put_in_force(struct filter_rules *rules)
{
    take_blocks(rules);
    __atomic_store_n(&in_force, rules, __ATOMIC_RELEASE);
}

void rules_forget(void)
{
    struct filter_rules *rules = not_in_force();
    rules->count = 0;
    put_in_force(rules);
}

void rules_read(const char *path)
{
    static char text[FILTER_BYTES]; /* the lock is held: one is enough */
    struct filter_rules *rules = not_in_force();
    char *rest = NULL;
    rules->count = 0;
    if (file_read(path, text, sizeof text))
        for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
            take_rule(rules, line);
    put_in_force(rules);
}

/* --- asking them */

bool rules_have(enum filtered_by by)
{
    const struct filter_rules *rules = rules_in_force();
    for (unsigned each = 0; each < rules->count; each++)
        if (rules->rules[each].by == by)
            return true;
    return false;
}

bool rules_ask(enum filtered_by by)
{
    const struct filter_rules *rules = rules_in_force();
    for (unsigned each = 0; each < rules->count; each++)
        if (rules->rules[each].by == by && !rules->rules[each].leaves_out)
            return true;
    return false;
}

bool rules_let_pass(enum filtered_by by, bool (*is_like)(const struct rule *rule, const void *what), const void *what)
{
    const struct filter_rules *rules = rules_in_force();
    bool asked = false, found = false;
    for (unsigned each = 0; each < rules->count; each++) {
        const struct rule *rule = &rules->rules[each];
        if (rule->by != by)
            continue;
        bool like = is_like(rule, what);
        if (like && rule->leaves_out)
            return false;
        asked |= !rule->leaves_out;
        found |= like;
    }
    return found || !asked;
}

/* --- patterns */

static const char *next_letter(const char *text)
{
    do
        text++;
    while (((unsigned char)*text & 0xc0) == 0x80); /* UTF-8 */
    return text;
}

bool is_like_pattern(const char *pattern, const char *text)
{
    const char *behind_star = NULL, *resumed = NULL;
    while (text && *text) {
        if (*pattern == '*') {
            behind_star = ++pattern;
            resumed = text;
        } else if (*pattern == '?') {
            pattern++;
            text = next_letter(text);
        } else if (*pattern == *text) {
            pattern++;
            text++;
        } else if (behind_star) {
            pattern = behind_star;
            text = resumed = next_letter(resumed);
        } else
            return false;
    }
    while (*pattern == '*')
        pattern++;
    return text && !*pattern;
}
