/* Files of installed packages: those below a directory that is named as interpreters name theirs. The name decides, not
   `sys.path`: start-up files, the user's directory, and the program itself extend that after recording has begun. A
   relative name can begin with that directory. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#define INSTALLED_DIRECTORIES(X) \
    X("/site-packages/", "of Python's installers") \
    X("/dist-packages/", "of Debian's packages")

static inline bool begins_with(const char *name, size_t bytes, const char *directory)
{
    size_t length = strlen(directory);
    return bytes >= length && memcmp(name, directory, length) == 0;
}

static inline bool is_installed_name(const char *name, size_t bytes)
{
#define INSTALLED_DIRECTORY(within, meaning) \
    if (memmem(name, bytes, within, sizeof within - 1) || begins_with(name, bytes, within + 1)) \
        return true;
    INSTALLED_DIRECTORIES(INSTALLED_DIRECTORY)
#undef INSTALLED_DIRECTORY
    return false;
}
