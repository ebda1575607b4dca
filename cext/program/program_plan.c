#define _GNU_SOURCE
#include "program/program_plan.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/detail_levels.h"
#include "core/fields.h"
#include "core/filter.h"
#include "core/open_file.h"
#include "hooks/open_calls.h"
#include "native/native_call.h"
#include "native/native_wrappers.h"
#include "program/program_databases.h"

enum { LARGEST_BYTES = 1024 * 1024, MOST_WORDS = 24 };

/* --- words */

/* The place of a word in a list that ends with NULL; 0 for one that is not there. */
static unsigned number_of(const char *const *list, const char *word)
{
    for (unsigned number = 0; list[number]; number++)
        if (strcmp(list[number], word) == 0)
            return number;
    return 0;
}

static unsigned split(char *line, char *words[MOST_WORDS])
{
    unsigned count = 0;
    char *rest;
    for (char *word = strtok_r(line, " ", &rest); word && count < MOST_WORDS; word = strtok_r(NULL, " ", &rest))
        words[count++] = word;
    return count;
}

/* --- what a line says */

static void take_setting(struct plan *plan, const char *name, const char *value)
{
    for (const struct setting_field *field = recorder_settings_fields; field->name; field++) {
        char *place = (char *)&plan->settings + field->offset;
        if (strcmp(field->name, name) != 0)
            continue;
        if (field->type == SETTING_text)
            *(const char **)(void *)place = value;
        else if (field->type == SETTING_number)
            *(uint64_t *)(void *)place = strtoull(value, NULL, 10);
        else
            *(uint32_t *)(void *)place = (uint32_t)strtoul(value, NULL, 10);
    }
}

static void fit_kinds(struct slot *slot, const struct native_row *row)
{
    char kinds[64], *words[MOST_WORDS], name[64];
    snprintf(kinds, sizeof kinds, "%s", row->kinds);
    snprintf(name, sizeof name, "%s.%s", row->library, row->name);
    unsigned count = split(kinds, words);
    const char *first = words[0];
    for (unsigned offset = 0; offset < count; offset++) {
        unsigned kind = number_of(kind_words, words[offset]);
        slot->kinds[kind] = (uint8_t)offset;
        number_is_of(slot->intrinsic + offset, kind);
        filter_know(slot->intrinsic + offset, name, kind == KIND_idle ? first : words[offset]);
    }
    slot->numbers = (uint8_t)count;
}

static void fit(struct slot *slot, const struct native_row *row, char *const *words, unsigned count)
{
    slot->intrinsic = (uint32_t)strtoul(words[0], NULL, 10);
    slot->detail = (uint8_t)number_of(detail_words, row->detail);
    slot->choice = (uint8_t)number_of(choice_words, row->choice);
    slot->moves = (uint8_t)number_of(moves_words, row->moves);
    slot->effect = (uint8_t)number_of(effect_words, row->effect);
    slot->waits = strncmp(row->kinds, "sync", 4) == 0 ? WAITS_wall : WAITS_not;
    for (unsigned level = 1; level < count && level <= KIND_COUNT; level++)
        slot->levels[level - 1] = (uint8_t)number_of(level_words, words[level]);
    fit_kinds(slot, row);
}

static void fit_named(struct native *all, const struct native_row *rows, unsigned rows_count, char *const *words, unsigned count)
{
    for (unsigned number = 0; number < rows_count; number++)
        if (strcmp(rows[number].name, words[0]) == 0)
            fit(&all[number].slot, &rows[number], words + 1, count - 1);
}

/* Its name, its first number, a level for each of its kinds. */
static void take_native(char *text)
{
    char *words[MOST_WORDS];
    unsigned count = split(text, words);
    if (count < 3)
        return;
    fit_named(natives, native_rows, NATIVE_COUNT, words, count);
    fit_named(databases, database_rows, DATABASE_COUNT, words, count);
}

static void take_argument(const char *kind, const char *how_much)
{
    unsigned long kept = strtoul(how_much, NULL, 10);
    if (kept <= KEEP_whole)
        arguments_choose((enum kind)number_of(kind_words, kind), (enum how_much)kept);
}

/* --- the file */

/* A line without its end; NULL after the last. */
static char *next_line(char **at, const char *end)
{
    char *line = *at, *stop = line < end ? memchr(line, '\n', (size_t)(end - line)) : NULL;
    if (!stop)
        return NULL;
    *stop = 0;
    *at = stop + 1;
    return line;
}

/* The next so many bytes. */
static void take_text(struct plan_text *piece, char **at, const char *end, const char *length)
{
    size_t bytes = strtoul(length, NULL, 10);
    if (bytes > (size_t)(end - *at))
        return;
    *piece = (struct plan_text){*at, bytes};
    *at += bytes;
}

static void take_line(struct plan *plan, char *line, char **at, const char *end)
{
    char *rest = strchr(line, ' ');
    if (!rest)
        return;
    *rest++ = 0;
    char *value = strchr(rest, ' ');
    if (strcmp(line, "map") == 0) {
        take_text(&plan->map, at, end, rest);
    } else if (strcmp(line, "head") == 0) {
        take_text(&plan->head, at, end, rest);
    } else if (strcmp(line, "filter") == 0) {
        take_text(&plan->filter, at, end, rest);
    } else if (strcmp(line, "native") == 0) {
        take_native(rest);
    } else if (value) {
        *value++ = 0;
        if (strcmp(line, "setting") == 0)
            take_setting(plan, rest, value);
        else if (strcmp(line, "argument") == 0)
            take_argument(rest, value);
        else if (strcmp(line, "note") == 0 && plan->notes < MOST_NOTES)
            plan->note[plan->notes++] = (struct plan_note){rest, value};
    }
}

static char *read_all(const char *founder, size_t *bytes)
{
    char path[PATH_BYTES];
    struct stat status;
    int opened = file_open_in(path, founder, "programs", O_RDONLY);
    bool fits = opened >= 0 && fstat(opened, &status) == 0 && S_ISREG(status.st_mode) && status.st_size < LARGEST_BYTES;
    char *text = fits ? malloc((size_t)status.st_size + 1) : NULL;
    ssize_t got = text ? read(opened, text, (size_t)status.st_size) : -1;
    if (opened >= 0)
        close(opened);
    *bytes = got > 0 ? (size_t)got : 0;
    return text;
}

bool plan_read(struct plan *plan, const char *founder)
{
    size_t bytes;
    char version[32], *at = read_all(founder, &bytes), *end = at + bytes, *line = at ? next_line(&at, end) : NULL;
    snprintf(version, sizeof version, "format %d", FORMAT_VERSION);
    *plan = (struct plan){.settings.trigger_errors = ""};
    if (!line || strcmp(line, version) != 0)
        return false;
    while ((line = next_line(&at, end)))
        take_line(plan, line, &at, end);
    return plan->head.bytes && plan->map.bytes;
}
