/* Which programs are interpreters that need our boot library preloaded, because they read no start-up file of ours. */
#pragma once

#include <stdbool.h>

#include "core/visible.h"

/* The boot library's path; NULL where it is not there, or the loader could not be told of it. */
VISIBLE const char *preload_library(void);

/* Is the program a Python interpreter that would not boot otherwise, and one that can be preloaded: of our own sort,
   linked dynamically, with nobody else's rights, without a sanitizer? `path` is the program as it is found, `words` are
   its name and arguments, ended by NULL; `has_our_path`: it is given the variable PATH that we have. Of a script it is
   said of its interpreter. */
VISIBLE bool preload_is_needed(const char *path, const char *const *words, bool has_our_path);
