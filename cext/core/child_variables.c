#define _GNU_SOURCE
#include "core/child_variables.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const char *kept[VARIABLES + 1];
static char *memory;
static bool are_kept;

int variables_keep(const char *texts, size_t bytes)
{
    char *copy = malloc(bytes + 1);
    if (!copy)
        return ENOMEM;
    memcpy(copy, texts, bytes);
    copy[bytes] = 0;
    free(memory);
    memory = copy;
    memset(kept, 0, sizeof kept);
    int number = 1;
    for (const char *text = copy; text < copy + bytes; text += strlen(text) + 1) {
        if (number == VARIABLES)
            return E2BIG;
        kept[number++] = text;
    }
    return 0;
}

void variables_name(const char *lineage)
{
    kept[0] = lineage;
    __atomic_store_n(&are_kept, lineage != NULL, __ATOMIC_RELEASE);
}

const char *const *variables(void)
{
    return __atomic_load_n(&are_kept, __ATOMIC_ACQUIRE) ? kept : NULL;
}

void variables_forget(void)
{
    char name[256];
    const char *added = getenv(VARIABLE_ADDED);
    while (added && *added) {
        size_t bytes = strcspn(added, " ");
        if (bytes < sizeof name) {
            memcpy(name, added, bytes);
            name[bytes] = 0;
            unsetenv(name);
        }
        added += bytes + (added[bytes] == ' ');
    }
    unsetenv(VARIABLE_ADDED);
    unsetenv(VARIABLE_WITHIN);
    unsetenv(VARIABLE_LINEAGE);
    __atomic_store_n(&are_kept, false, __ATOMIC_RELAXED);
}
