#define _GNU_SOURCE
#include "core/filter.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "core/file.h"
#include "core/recorder.h"

enum { FILTER_BYTES = 64 * 1024 };

/* A rule: its class, whether it excludes, and its values. */
struct rule {
    enum filtered_by by;
    bool leaves_out;
    char text[FILTER_TEXT], more[FILTER_TEXT];
    uint64_t first, last;
    uint32_t number; /* of a transaction's name in strings */
};

struct filter filter;

/* The contents of a filter. The next one is read into the other structure, so threads that are just asking continue
   with theirs. */
struct known {
    struct rule rules[FILTER_RULES];
    unsigned count;
    uint64_t skip, keep, from_ns, to_ns;
};
static struct known known_filters[2], *in_force = known_filters;

static const struct known *what_is_known(void)
{
    return __atomic_load_n(&in_force, __ATOMIC_ACQUIRE);
}

static struct known *not_in_force(void)
{
    return in_force == known_filters ? known_filters + 1 : known_filters;
}

/* Of the intrinsics, by number. */
static struct {
    char name[FILTER_NAME], kind[16];
} intrinsics[COUNTED_NUMBERS];

/* --- reading it */

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
static void take_rule(struct known *known, char *line)
{
    char *rest = NULL, *word = strtok_r(line, "\t", &rest), *value = strtok_r(NULL, "\t", &rest);
    char *second = strtok_r(NULL, "\t", &rest), *third = strtok_r(NULL, "\t", &rest);
    struct rule *rule = &known->rules[known->count];
    if (!word || known->count == FILTER_RULES || !take_class(word + 1, &rule->by) || !take_text(rule->text, value))
        return;
    rule->leaves_out = *word == '-';
    rule->more[0] = 0;
    rule->first = strtoull(rule->by == BY_line && second ? second : value, NULL, 10);
    rule->last = third ? strtoull(third, NULL, 10) : rule->first;
    if (second && !take_text(rule->more, second))
        return;
    rule->number = rule->by == BY_transaction ? string_intern_held(value, strlen(value)) : 0;
    known->count++;
}

static void take_blocks(struct known *known)
{
    known->skip = known->from_ns = 0;
    known->keep = known->to_ns = UINT64_MAX;
    for (unsigned each = 0; each < known->count; each++) {
        const struct rule *rule = &known->rules[each];
        uint64_t *places[FILTER_CLASSES] = {
            [BY_skip] = &known->skip, [BY_keep] = &known->keep, [BY_from] = &known->from_ns, [BY_to] = &known->to_ns};
        if (places[rule->by])
            *places[rule->by] = rule->first;
    }
}

static bool has(enum filtered_by by)
{
    const struct known *known = what_is_known();
    for (unsigned each = 0; each < known->count; each++)
        if (known->rules[each].by == by)
            return true;
    return false;
}

/* Is something of that class asked for, and not merely something left out? */
static bool asks(enum filtered_by by)
{
    const struct known *known = what_is_known();
    for (unsigned each = 0; each < known->count; each++)
        if (known->rules[each].by == by && !known->rules[each].leaves_out)
            return true;
    return false;
}

/* Whether a class lets pass what `is_like` its rules or is not. */
static bool lets_pass(enum filtered_by by, bool (*is_like)(const struct rule *rule, const void *what), const void *what)
{
    const struct known *known = what_is_known();
    bool asked = false, found = false;
    for (unsigned each = 0; each < known->count; each++) {
        const struct rule *rule = &known->rules[each];
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

/* `*` matches anything, `?` one character, everything else itself; independent of the program's locale. */
static bool is_like(const char *pattern, const char *text)
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

/* --- intrinsics */

static bool is_of_kind(const struct rule *rule, const void *number)
{
    return strcmp(rule->text, intrinsics[*(const uint32_t *)number].kind) == 0;
}

static bool is_event(const struct rule *rule, const void *number)
{
    const uint32_t place = *(const uint32_t *)number;
    if (strcmp(rule->text, "kind") == 0)
        return strcmp(rule->more, intrinsics[place].kind) == 0;
    return is_like(rule->more, intrinsics[place].name);
}

static void decide_number(uint32_t number)
{
    filter.left_out[number] = intrinsics[number].kind[0] && (!lets_pass(BY_kind, is_of_kind, &number) ||
                                                            !lets_pass(BY_event, is_event, &number));
}

void filter_know(uint32_t number, const char *name, const char *kind)
{
    if (number >= COUNTED_NUMBERS)
        return;
    strncpy(intrinsics[number].name, name, FILTER_NAME - 1);
    strncpy(intrinsics[number].kind, kind, sizeof intrinsics[number].kind - 1);
    decide_number(number);
}

/* --- the process */

static bool is_process(const struct rule *rule, const void *lineage)
{
    const char *name = *(const char *)lineage ? lineage : "founder";
    return is_like(rule->text, name) || (rule->first && rule->first == (uint64_t)getpid());
}

/* From now on these are in force. */
static void put_in_force(struct known *known)
{
    take_blocks(known);
    __atomic_store_n(&in_force, known, __ATOMIC_RELEASE);
    filter.serial++;
}

void filter_forget(void)
{
    struct known *known = not_in_force();
    known->count = 0;
    filter.on = filter.changes = 0;
    put_in_force(known);
    memset(filter.left_out, 0, sizeof filter.left_out);
}

static void decide(const char *lineage)
{
    filter.none = !lets_pass(BY_process, is_process, lineage);
    filter.by_site = has(BY_module) || has(BY_package) || has(BY_function) || has(BY_line);
    filter.by_within = has(BY_within);
    filter.asks_within = asks(BY_within);
    filter.by_transaction = has(BY_transaction);
    filter.by_thread = has(BY_thread);
    filter.by_block = has(BY_skip) || has(BY_keep);
    filter.by_time = has(BY_from) || has(BY_to);
    bool others = filter.by_site || filter.by_transaction || filter.by_thread || filter.by_block || filter.by_time;
    filter.looks = filter.by_within || others;
    filter.only_within = filter.by_within && !others;
    for (uint32_t number = 1; number < COUNTED_NUMBERS; number++)
        decide_number(number);
    filter.on = what_is_known()->count > 0;
}

/* The lock is held: one text is enough. */
static void read_rules(struct known *known, const char *path)
{
    static char text[FILTER_BYTES];
    char *rest = NULL;
    known->count = 0;
    if (file_read(path, text, sizeof text))
        for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
            take_rule(known, line);
}

void filter_read(const char *directory, const char *lineage, uint32_t changes)
{
    char path[PATH_BYTES];
    int saved = errno;
    filter_forget();
    filter.changes = changes;
    if (changes && snprintf(path, sizeof path, "%s/filter", directory) < (int)sizeof path) {
        struct known *known = not_in_force();
        read_rules(known, path);
        put_in_force(known);
    }
    decide(lineage);
    errno = saved;
}

/* --- sites */

static bool is_module(const struct rule *rule, const void *site)
{
    return is_like(rule->text, ((const struct call_site *)site)->module);
}

/* A package includes what is below it. */
static bool is_package(const struct rule *rule, const void *site)
{
    const char *module = ((const struct call_site *)site)->module;
    if (!module || is_like(rule->text, module))
        return module;
    char outer[FILTER_TEXT];
    size_t bytes = strnlen(module, sizeof outer - 1);
    memcpy(outer, module, bytes);
    for (outer[bytes] = 0; bytes > 0; bytes--)
        if (outer[bytes] == '.') {
            outer[bytes] = 0;
            if (is_like(rule->text, outer))
                return true;
        }
    return false;
}

static bool is_function(const struct rule *rule, const void *what)
{
    const struct call_site *site = what;
    return is_like(rule->more, site->function) && (strcmp(rule->text, "*") == 0 || is_like(rule->text, site->module));
}

/* A file is identified by its path, or by the end of it. */
static bool is_of_file(const char *pattern, const char *file)
{
    if (is_like(pattern, file))
        return true;
    for (const char *part = file ? strchr(file, '/') : NULL; part; part = strchr(part + 1, '/'))
        if (is_like(pattern, part + 1))
            return true;
    return false;
}

static bool is_line(const struct rule *rule, const void *what)
{
    const struct call_site *site = what;
    return site->line >= rule->first && site->line <= rule->last && is_of_file(rule->text, site->file);
}

bool filter_site(const struct call_site *site)
{
    return lets_pass(BY_module, is_module, site) && lets_pass(BY_package, is_package, site) &&
           lets_pass(BY_function, is_function, site) && lets_pass(BY_line, is_line, site);
}

unsigned filter_within(const struct call_site *site)
{
    const struct known *known = what_is_known();
    unsigned found = 0;
    for (unsigned each = 0; each < known->count; each++)
        if (known->rules[each].by == BY_within && is_function(&known->rules[each], site))
            found |= known->rules[each].leaves_out ? WITHIN_LEFT_OUT : WITHIN_ASKED;
    return found;
}

/* --- threads, transactions, and blocks of events */

static bool is_thread(const struct rule *rule, const void *what)
{
    const struct thread *thread = what;
    if (strcmp(rule->text, "main") == 0 && thread->record->fields.main)
        return true;
    bool is_number = rule->text[strspn(rule->text, "0123456789")] == 0;
    return is_number ? rule->first == thread->number : is_like(rule->text, thread->name);
}

bool filter_thread(const struct thread *thread)
{
    return lets_pass(BY_thread, is_thread, thread);
}

static bool is_in_transaction(const struct rule *rule, const void *what)
{
    const struct thread_record *record = what;
    for (uint32_t index = record->fields.depth < OPEN_CALLS ? record->fields.depth : OPEN_CALLS; index-- > 0;)
        if (record->open[index].call && record->open[index].detail == rule->number &&
            is_transaction(record->open[index].intrinsic))
            return true;
    return false;
}

uint32_t filter_number_of(const char *text, size_t bytes)
{
    const struct known *known = what_is_known();
    for (unsigned each = 0; filter.by_transaction && each < known->count; each++) {
        const struct rule *rule = &known->rules[each];
        if (rule->by == BY_transaction && strlen(rule->text) == bytes && memcmp(rule->text, text, bytes) == 0)
            return rule->number;
    }
    return 0;
}

bool filter_transaction(const struct thread_record *record)
{
    return lets_pass(BY_transaction, is_in_transaction, record);
}

/* The coarse clock advances with the kernel's ticks, every few milliseconds, and costs a fifth. */
bool filter_time(void)
{
    const struct known *known = what_is_known();
    uint64_t now_ns = clock_ns(CLOCK_MONOTONIC_COARSE);
    return now_ns >= known->from_ns && now_ns < known->to_ns;
}

static uint64_t end_of_block(void)
{
    const struct known *known = what_is_known();
    return known->keep > UINT64_MAX - known->skip ? UINT64_MAX : known->skip + known->keep;
}

bool filter_block_is_over(const struct control *control)
{
    return __atomic_load_n(&control->filter_passed, __ATOMIC_RELAXED) >= end_of_block();
}

bool filter_block(struct control *control)
{
    const struct known *known = what_is_known();
    if (filter_block_is_over(control))
        return false;
    uint64_t place = __atomic_fetch_add(&control->filter_passed, 1, __ATOMIC_RELAXED);
    return place >= known->skip && place < end_of_block();
}
