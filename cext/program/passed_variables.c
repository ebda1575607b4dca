#define _GNU_SOURCE
#include "program/passed_variables.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "core/child_variables.h"
#include "core/preload.h"

enum { MOST_VARIABLES = 4096, MOST_BYTES = 64 * 1024, ADDED = 2 /* ours, and the end */ };

static const char preload_name[] = "LD_PRELOAD=";

static char *const *find(char *const *variables, const char *name, size_t bytes)
{
    while (*variables && strncmp(*variables, name, bytes) != 0)
        variables++;
    return *variables ? variables : NULL;
}

static char *const *find_lineage(char *const *variables)
{
    return find(variables, VARIABLE_LINEAGE "=", sizeof VARIABLE_LINEAGE);
}

struct variables_room room_for_variables(char *const *given)
{
    struct variables_room none = {1, 1}, room = {ADDED, sizeof preload_name + 1};
    const char *library = preload_library();
    if (!given || !library || !variables() || !find_lineage(given))
        return none;
    for (char *const *each = given; *each; each++)
        room.count++;
    char *const *preloaded = find(given, preload_name, sizeof preload_name - 1);
    room.preload_bytes += strlen(library) + (preloaded ? strlen(*preloaded) : 0);
    return room.count < MOST_VARIABLES && room.preload_bytes < MOST_BYTES ? room : none;
}

/* Ours after those that are there. */
static void write_preload(char *preload, const char *there)
{
    strcpy(preload, there ? there : preload_name);
    if (there)
        strcat(preload, ":");
    strcat(preload, preload_library());
}

char *const *pass_variables(char *const *given, const char *path, char *const *words, char **passed, char *preload)
{
    struct variables_room room = room_for_variables(given);
    size_t count = 0;
    int saved = errno;
    if (room.count <= ADDED)
        return given;
    bool needs_library = path && words && preload_is_needed(path, (const char *const *)words, true), written = false;
    for (char *const *each = given; *each; each++) {
        passed[count] = *each;
        if (each == find_lineage(given))
            passed[count] = (char *)(size_t)variables()[0];
        if (needs_library && !written && strncmp(*each, preload_name, sizeof preload_name - 1) == 0) {
            write_preload(preload, *each);
            passed[count] = preload;
            written = true;
        }
        count++;
    }
    if (needs_library && !written) {
        write_preload(preload, NULL);
        passed[count++] = preload;
    }
    passed[count] = NULL;
    errno = saved;
    return passed;
}
