/* The rules of the filter, as they stand in its file, and whether they let something pass. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* The classes of rules; the words are those of the file. */
#define FILTERED_BY(X) \
    X(kind) X(event) X(module) X(package) X(function) X(line) X(within) X(transaction) X(thread) X(process) \
    X(skip) X(keep) X(from) X(to)
#define NUMBER_OF_FILTERED(name) BY_##name,
enum filtered_by { FILTERED_BY(NUMBER_OF_FILTERED) FILTER_CLASSES };

enum { FILTER_RULES = 64, FILTER_TEXT = 200 * 4 + 1 }; /* letters have up to four bytes */

/* A rule: its class, whether it excludes, and its values. */
struct rule {
    enum filtered_by by;
    bool leaves_out;
    char text[FILTER_TEXT], more[FILTER_TEXT];
    uint64_t first, last;
    uint32_t number; /* of a transaction's name in strings */
};

/* The contents of a filter. The next one is read into a structure that no thread is just asking. */
struct filter_rules {
    struct rule rules[FILTER_RULES];
    unsigned count;
    uint64_t skip, keep, from_ns, to_ns; /* read at calls without holding the rules */
};

/* The rules in force: of single words, or with the exclusive lock held. */
const struct filter_rules *rules_in_force(void);

/* The same, and they stay as they are until the calling thread lets them go, even if others come meanwhile. */
const struct filter_rules *rules_hold(void);
void rules_let_go(void);

/* Put no rules, or those of the file, in force. The caller holds the exclusive lock. If this fails, the rules in force stay:
   EAGAIN if all structures are in use, else why the file cannot be read. */
int rules_forget(void);
int rules_read(const char *path);

/* Whether there is a rule of that class; whether there is one that includes, and does not only exclude. */
bool rules_have(enum filtered_by by);
bool rules_ask(enum filtered_by by);

/* Does a class let pass what `is_like` its rules or is not? */
bool rules_let_pass(enum filtered_by by, bool (*is_like)(const struct rule *rule, const void *what), const void *what);

/* `*` matches anything, `?` one character, everything else itself; independent of the program's locale. */
bool is_like_pattern(const char *pattern, const char *text);
