#define _GNU_SOURCE
#include "core/filter_rules.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/interning.h"
#include "core/open_file.h"
#include "core/threads.h"

enum { FILTER_BYTES = 64 * 1024, STRUCTURES = 4 };

static struct filter_rules all[STRUCTURES], *in_force = all;

const struct filter_rules *rules_in_force(void)
{
    return __atomic_load_n(&in_force, __ATOMIC_ACQUIRE);
}

/* Who puts others in force, and comes to use these again, sees that they are asked, or the thread sees the others. */
const struct filter_rules *rules_hold(void)
{
    struct thread *thread = current_thread;
    const struct filter_rules *rules = rules_in_force(), *held = NULL;
    while (thread && held != rules) {
        held = rules;
        __atomic_store_n(&thread->asks, held, __ATOMIC_SEQ_CST);
        rules = __atomic_load_n(&in_force, __ATOMIC_SEQ_CST);
    }
    return rules;
}

void rules_let_go(void)
{
    if (current_thread)
        __atomic_store_n(&current_thread->asks, NULL, __ATOMIC_RELEASE);
}

static struct filter_rules *unused_rules(void)
{
    struct filter_rules *each = all;
    while (each < all + STRUCTURES && (each == in_force || threads_ask(each)))
        each++;
    return each < all + STRUCTURES ? each : NULL;
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
    uint64_t words[FILTER_CLASSES] = {[BY_keep] = UINT64_MAX, [BY_to] = UINT64_MAX};
    for (unsigned each = 0; each < rules->count; each++)
        words[rules->rules[each].by] = rules->rules[each].first;
    __atomic_store_n(&rules->skip, words[BY_skip], __ATOMIC_RELAXED);
    __atomic_store_n(&rules->keep, words[BY_keep], __ATOMIC_RELAXED);
    __atomic_store_n(&rules->from_ns, words[BY_from], __ATOMIC_RELAXED);
    __atomic_store_n(&rules->to_ns, words[BY_to], __ATOMIC_RELAXED);
}

static void put_in_force(struct filter_rules *rules)
{
    take_blocks(rules);
    __atomic_store_n(&in_force, rules, __ATOMIC_SEQ_CST);
}

static int take_rules(char *text)
{
    struct filter_rules *rules = unused_rules();
    char *rest = NULL;
    if (!rules)
        return EAGAIN;
    rules->count = 0;
    for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
        take_rule(rules, line);
    put_in_force(rules);
    return 0;
}

int rules_forget(void)
{
    char none[] = "";
    return take_rules(none);
}

int rules_read(const char *path)
{
    static char text[FILTER_BYTES]; /* the lock is held: one is enough */
    return file_read(path, text, sizeof text) || errno == 0 ? take_rules(text) : errno; /* empty: no rules */
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

static bool let_pass(const struct filter_rules *rules, enum filtered_by by,
                     bool (*is_like)(const struct rule *rule, const void *what), const void *what)
{
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

bool rules_let_pass(enum filtered_by by, bool (*is_like)(const struct rule *rule, const void *what), const void *what)
{
    bool passes = let_pass(rules_hold(), by, is_like, what);
    rules_let_go();
    return passes;
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
