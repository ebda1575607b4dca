/* Which programs need the boot library preloaded: interpreters that read no start-up file of ours and, on request,
   programs in other languages. */
#pragma once

#include <stdbool.h>

#include "core/program.h"
#include "core/visible.h"

/* The boot library's path; NULL if it is missing, or if the loader cannot use the path. */
VISIBLE const char *preload_library(void);

/* Whether programs that are not Python are followed from now on, and whether that one is that has this `reason` against it. */
VISIBLE void preload_choose_programs(bool followed);
VISIBLE bool preload_follows(enum reason reason);

/* Whether the program is one of these and can be preloaded, or is a Python interpreter that would not boot otherwise and can be preloaded: of the same
   version and architecture, dynamically linked, without other rights, without a sanitizer. `path` is the program,
   `words` are its name and arguments, ended by NULL; `has_our_path`: it gets our variable PATH. For a script, the
   answer is about its interpreter. */
VISIBLE bool preload_is_needed(const char *path, const char *const *words, bool has_our_path);
