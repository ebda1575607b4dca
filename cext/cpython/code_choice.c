#include "cpython/code_choice.h"

#include <fnmatch.h>
#include <string.h>

void choose_own_code(struct code_choice *choice)
{
    choice->count = 0;
    choice->serial++;
}

bool choose(struct code_choice *choice, const char *module, const char *function)
{
    if (choice->count == CHOICES || strlen(module) >= CHOICE_BYTES || strlen(function) >= CHOICE_BYTES)
        return false;
    strcpy(choice->pattern[choice->count].module, module);
    strcpy(choice->pattern[choice->count++].function, function);
    return true;
}

static bool is_module(const char *pattern, const char *module)
{
    size_t bytes = strlen(pattern);
    return fnmatch(pattern, module, 0) == 0 || (strncmp(pattern, module, bytes) == 0 && module[bytes] == '.');
}

/* A function's comprehensions, and other code inside of it without a name, are the function's. */
static bool is_function(const char *pattern, const char *function)
{
    char outer[CHOICE_BYTES];
    const char *inside = strstr(function, ".<locals>.<");
    if (fnmatch(pattern, function, 0) == 0)
        return true;
    if (!inside || (size_t)(inside - function) >= sizeof outer)
        return false;
    memcpy(outer, function, (size_t)(inside - function));
    outer[inside - function] = 0;
    return fnmatch(pattern, outer, 0) == 0;
}

bool is_chosen(const struct code_choice *choice, const char *module, const char *function, bool own)
{
    for (unsigned index = 0; index < choice->count; index++)
        if (is_module(choice->pattern[index].module, module) && is_function(choice->pattern[index].function, function))
            return true;
    return !choice->count && own;
}
