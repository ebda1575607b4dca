/* File names of code that nobody edits: modules that the interpreter has built in, and code that well-known packages
   generate to wrap the program's functions. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#define GENERATED_NAMES(X) \
    X("<frozen ", "modules that are built in") \
    X("<sqlalchemy generated ", "wrappers of SQLAlchemy's methods, since 2.1") \
    X("<attrs generated ", "methods of attrs' classes") \
    X("<decorator-gen-", "functions decorated with the package decorator") \
    X("<makefun-gen-", "the same of makefun")

static inline bool is_generated_name(const char *name, size_t bytes)
{
#define GENERATED_NAME(begin, meaning) \
    if (bytes >= sizeof begin - 1 && memcmp(name, begin, sizeof begin - 1) == 0) \
        return true;
    GENERATED_NAMES(GENERATED_NAME)
#undef GENERATED_NAME
    return false;
}
