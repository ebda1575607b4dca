/* Which interpreters need the boot library preloaded, because they read no start-up file of ours. */
#pragma once

#include <stdbool.h>

#include "core/visible.h"

/* The boot library's path; NULL if it is missing, or if the loader cannot use the path. */
VISIBLE const char *preload_library(void);

/* Whether the program is a Python interpreter that would not boot otherwise and can be preloaded: of the same
   version and architecture, dynamically linked, without other rights, without a sanitizer. `path` is the program,
   `words` are its name and arguments, ended by NULL; `has_our_path`: it gets our variable PATH. For a script, the
   answer is about its interpreter. */
VISIBLE bool preload_is_needed(const char *path, const char *const *words, bool has_our_path);
