/* What a program is, from its file: whether a process that runs it can be followed. */
#pragma once

#include "core/open_file.h"
#include "core/visible.h"

/* Why a process cannot be followed. An interpreter with nothing compiled for it, or of another kind, shows in its
   missing experiment; a program in another language may still start one that is followed. */
#define REASONS(X) \
    X(NOT_PYTHON,   "not Python") \
    X(STATIC,       "linked statically") \
    X(RIGHTS,       "another user's rights") \
    X(ARCHITECTURE, "another architecture") \
    X(LOADER,       "another C library") \
    X(SANITIZER,    "address sanitizer")

#define NUMBER_OF_REASON(name, words) REASON_##name,
enum reason { REASON_none, REASONS(NUMBER_OF_REASON) };

/* The reason in words; NULL for none. */
VISIBLE const char *reason_words(enum reason reason);

/* Why a process that runs the file at `path` cannot be followed. Asked again only when it is another file. */
VISIBLE enum reason program_reason(const char *path);

/* Is it CPython, or PyPy, by its name or by that of the file that it is a link to? */
VISIBLE bool program_is_python(const char *path);

/* The path of a program with this name, as execvp(3) finds it; false if there is none. */
VISIBLE bool program_find(const char *name, char path[PATH_BYTES]);

/* Is there a file at `path` that can be run? */
VISIBLE bool program_is_there(const char *path);
