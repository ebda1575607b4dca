#define _GNU_SOURCE
#include "core/passed_variables.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/child_variables.h"
#include "core/preload.h"

enum { MORE = VARIABLES + 3 /* the library, what was added, and the end */ };

static const char preload_name[] = "LD_PRELOAD=", added_name[] = VARIABLE_ADDED "=";

/* That of the same name, up to and including its `=`; NULL if there is none. */
static char *const *find(char *const *variables, const char *like)
{
    size_t bytes = strcspn(like, "=") + 1;
    while (*variables && strncmp(*variables, like, bytes) != 0)
        variables++;
    return *variables ? variables : NULL;
}

/* --- what is kept */

static bool is_called(const char *text, const char *name)
{
    size_t bytes = strlen(name);
    return strncmp(text, name, bytes) == 0 && text[bytes] == '=';
}

static bool is_setting(const char *text)
{
    return strncmp(text, VARIABLE_SWITCH, strlen(VARIABLE_SWITCH)) == 0 && strchr(text, '=') &&
           !is_called(text, VARIABLE_LINEAGE) && !is_called(text, VARIABLE_ADDED);
}

void passed_variables_keep(char *const *given)
{
    char *texts = NULL;
    size_t bytes = 0;
    FILE *out = open_memstream(&texts, &bytes);
    for (; out && *given; given++)
        if (is_setting(*given))
            fwrite(*given, 1, strlen(*given) + 1, out);
    if (out && fclose(out) == 0)
        variables_keep(texts, bytes);
    free(texts);
}

/* --- what is passed on */

/* Is there something to change, and room for it? */
static bool can_change(char *const *given)
{
    const char *library = preload_library();
    if (!given || !library || !variables())
        return false;
    size_t count = MORE, bytes = sizeof preload_name + 1 + ADDED_BYTES + strlen(library);
    for (char *const *each = given; *each && count < MOST_VARIABLES; each++)
        count++;
    char *const *preloaded = find(given, preload_name);
    bytes += preloaded ? strlen(*preloaded) : 0;
    return count < MOST_VARIABLES && bytes < MOST_VARIABLE_BYTES;
}

static bool is_switched_off(char *const *given)
{
    char *const *said = find(given, VARIABLE_SWITCH "=");
    return said && switches_off(*said + sizeof VARIABLE_SWITCH);
}

/* Is it a program that records, and is not told to by who starts it? */
static bool lacks_variables(char *const *given, const char *path, bool needs_library)
{
    return path && !find(given, VARIABLE_LINEAGE "=") && !is_switched_off(given) &&
           (needs_library || program_reason(path) == REASON_none);
}

/* One that has its own setting of what to record needs only its place, the founder's libraries, and what became of the transaction
   in which it is started. */
static bool is_needed_by_all(const char *text)
{
    return is_called(text, VARIABLE_LINEAGE) || is_called(text, VARIABLE_GROUP) || is_called(text, VARIABLE_WITHIN);
}

/* Put in what is missing, and note its name. */
static size_t add_variables(char *const *given, char **passed, char *added)
{
    size_t count = 0, used = strlen(strcpy(added, added_name));
    bool is_told = find(given, VARIABLE_SWITCH "=");
    for (const char *const *each = variables(); *each; each++) {
        size_t bytes = strcspn(*each, "=");
        if ((is_told && !is_needed_by_all(*each)) || find(given, *each) || used + bytes + 2 > ADDED_BYTES)
            continue;
        used += (size_t)sprintf(added + used, "%s%.*s", count ? " " : "", (int)bytes, *each);
        passed[count++] = (char *)(size_t)*each;
    }
    passed[count++] = added;
    return count;
}

/* Ours after those that are there. */
static void write_preload(char *preload, char *const *there)
{
    strcpy(preload, there ? *there : preload_name);
    if (there)
        strcat(preload, ":");
    strcat(preload, preload_library());
}

static char *replacement_of(char *variable, bool needs_library, char *preload)
{
    if (strncmp(variable, variables()[0], sizeof VARIABLE_LINEAGE) == 0)
        return (char *)(size_t)variables()[0];
    return needs_library && strncmp(variable, preload_name, sizeof preload_name - 1) == 0 ? preload : variable;
}

static bool has_our_path(char *const *given)
{
    const char *ours = getenv("PATH");
    char *const *path = find(given, "PATH=");
    return ours && path && strcmp(*path + strlen("PATH="), ours) == 0;
}

char *const *pass_variables(char *const *given, const char *path, char *const *words, struct passed_variables *passed)
{
    char **variables = passed->variables, *preload = passed->texts + ADDED_BYTES;
    size_t count = 0;
    if (!can_change(given))
        return given;
    bool needs_library = path && words && preload_is_needed(path, (const char *const *)words, has_our_path(given));
    char *const *there = find(given, preload_name);
    if (needs_library)
        write_preload(preload, there);
    for (; given[count]; count++)
        variables[count] = replacement_of(given[count], needs_library, preload);
    if (needs_library && !there)
        variables[count++] = preload;
    if (lacks_variables(given, path, needs_library))
        count += add_variables(given, variables + count, passed->texts);
    variables[count] = NULL;
    return variables;
}
