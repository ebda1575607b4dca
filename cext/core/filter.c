#define _GNU_SOURCE
#include "core/filter.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "core/exclusive.h"
#include "core/filter_rules.h"
#include "core/log.h"
#include "core/open_file.h"
#include "core/recorder.h"
#include "core/session.h"

enum { FILTER_NAME = 128 };

struct filter filter;

/* Of the intrinsics, by number. */
static struct {
    char *name; /* NULL: unknown yet */
    char kind[16];
} intrinsics[COUNTED_NUMBERS];

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
    return is_like_pattern(rule->more, intrinsics[place].name);
}

static void decide_number(uint32_t number)
{
    bool is_left_out = intrinsics[number].kind[0] && (!rules_let_pass(BY_kind, is_of_kind, &number) ||
                                                      !rules_let_pass(BY_event, is_event, &number));
    __atomic_store_n(&filter.left_out[number], is_left_out, __ATOMIC_RELAXED);
}

void filter_know(uint32_t number, const char *name, const char *kind)
{
    if (number >= COUNTED_NUMBERS)
        return;
    char *copy = strndup(name, FILTER_NAME - 1);
    if (!copy)
        return;
    bool alone = exclusive_begin(); /* or another thread decides by the next rules meanwhile, and this one by the last */
    if (alone)
        free(intrinsics[number].name);
    intrinsics[number].name = copy;
    strncpy(intrinsics[number].kind, kind, sizeof intrinsics[number].kind - 1);
    decide_number(number);
    if (alone)
        exclusive_end();
}

/* --- the process */

static bool is_process(const struct rule *rule, const void *lineage)
{
    const char *name = *(const char *)lineage ? lineage : "founder";
    return is_like_pattern(rule->text, name) || (rule->first && rule->first == (uint64_t)getpid());
}

static void switch_to(bool on)
{
    __atomic_store_n(&filter.on, on, __ATOMIC_RELAXED);
}

void filter_take_changes(uint32_t changes)
{
    __atomic_store_n(&filter.changes, changes, __ATOMIC_RELAXED);
}

/* After the rules are in force. */
static void next_serial(void)
{
    __atomic_store_n(&filter.serial, filter.serial + 1, __ATOMIC_RELEASE);
}

static void leave_none_out(void)
{
    for (uint32_t number = 0; filter_is_on() && number < COUNTED_NUMBERS; number++)
        __atomic_store_n(&filter.left_out[number], 0, __ATOMIC_RELAXED);
    switch_to(false);
}

void filter_forget(void)
{
    leave_none_out();
    filter_take_changes(0);
    rules_forget();
    next_serial();
}

static void set(bool *flag, bool value)
{
    __atomic_store_n(flag, value, __ATOMIC_RELAXED);
}

static void decide(const char *lineage)
{
    bool by_site = rules_have(BY_module) || rules_have(BY_package) || rules_have(BY_function) || rules_have(BY_line);
    bool by_within = rules_have(BY_within), by_transaction = rules_have(BY_transaction), by_thread = rules_have(BY_thread);
    bool by_block = rules_have(BY_skip) || rules_have(BY_keep), by_time = rules_have(BY_from) || rules_have(BY_to);
    bool others = by_site || by_transaction || by_thread || by_block || by_time;
    set(&filter.none, !rules_let_pass(BY_process, is_process, lineage));
    set(&filter.by_site, by_site);
    set(&filter.by_within, by_within);
    set(&filter.asks_within, rules_ask(BY_within));
    set(&filter.by_transaction, by_transaction);
    set(&filter.by_thread, by_thread);
    set(&filter.by_block, by_block);
    set(&filter.by_time, by_time);
    set(&filter.looks, by_within || others);
    set(&filter.only_within, by_within && !others);
    bool on = rules_in_force()->count > 0;
    for (uint32_t number = 1; on && number < COUNTED_NUMBERS; number++) /* else nothing is left out */
        decide_number(number);
    switch_to(on);
}

static void tell_unread(int failed)
{
    char attributes[160];
    snprintf(attributes, sizeof attributes, "text=\"the filter could not be read (%s); the previous one stays in force\"",
             error_in_words(failed));
    recorder_say("warning", attributes);
}

void filter_read(const char *directory, const char *lineage, uint32_t changes)
{
    char path[PATH_BYTES];
    int saved = errno;
    leave_none_out();
    bool is_one = changes && snprintf(path, sizeof path, "%s/filter", directory) < (int)sizeof path;
    int failed = is_one ? rules_read(path) : rules_forget();
    if (failed != EAGAIN)
        filter_take_changes(changes); /* else the next call does */
    next_serial();
    decide(lineage);
    if (failed && failed != EAGAIN)
        tell_unread(failed);
    errno = saved;
}

/* --- threads, transactions, and blocks of events */

static bool is_thread(const struct rule *rule, const void *what)
{
    const struct thread *thread = what;
    if (strcmp(rule->text, "main") == 0 && thread->record->fields.main)
        return true;
    bool is_number = rule->text[strspn(rule->text, "0123456789")] == 0;
    return is_number ? rule->first == thread->number : is_like_pattern(rule->text, thread->name);
}

bool filter_thread(const struct thread *thread)
{
    return rules_let_pass(BY_thread, is_thread, thread);
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
    const struct filter_rules *rules = rules_in_force();
    for (unsigned each = 0; filter_says(&filter.by_transaction) && each < rules->count; each++) {
        const struct rule *rule = &rules->rules[each];
        if (rule->by == BY_transaction && strlen(rule->text) == bytes && memcmp(rule->text, text, bytes) == 0)
            return rule->number;
    }
    return 0;
}

bool filter_transaction(const struct thread_record *record)
{
    return rules_let_pass(BY_transaction, is_in_transaction, record);
}

static uint64_t word(const uint64_t *place)
{
    return __atomic_load_n(place, __ATOMIC_RELAXED);
}

/* The coarse clock advances with the kernel's ticks, every few milliseconds, and costs a fifth. */
bool filter_time(void)
{
    const struct filter_rules *rules = rules_in_force();
    uint64_t now_ns = clock_ns(CLOCK_MONOTONIC_COARSE);
    return now_ns >= word(&rules->from_ns) && now_ns < word(&rules->to_ns);
}

static uint64_t end_of_block(void)
{
    const struct filter_rules *rules = rules_in_force();
    uint64_t skip = word(&rules->skip), keep = word(&rules->keep);
    return keep > UINT64_MAX - skip ? UINT64_MAX : skip + keep;
}

bool filter_block_is_over(const struct control *control)
{
    return __atomic_load_n(&control->filter_passed, __ATOMIC_RELAXED) >= end_of_block();
}

bool filter_block(struct control *control)
{
    const struct filter_rules *rules = rules_in_force();
    if (filter_block_is_over(control))
        return false;
    uint64_t place = __atomic_fetch_add(&control->filter_passed, 1, __ATOMIC_RELAXED);
    return place >= word(&rules->skip) && place < end_of_block();
}
