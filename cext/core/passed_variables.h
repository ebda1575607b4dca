/* The environment that a program passes on, with what its child needs to be recorded. It allocates nothing: a child of vfork(2)
   may not. */
#pragma once

#include "core/visible.h"

enum { MOST_VARIABLES = 4096, MOST_VARIABLE_BYTES = 64 * 1024 };

/* Room for it. */
struct passed_variables {
    char *variables[MOST_VARIABLES], texts[MOST_VARIABLE_BYTES];
};

/* Keep what switches recording on, from the environment that this program was given, for children that get another one. */
VISIBLE void passed_variables_keep(char *const *given);

/* The environment for the program at `path` with these words; `given` itself if nothing is to be changed. `passed` stays until
   the call has returned. What `given` lacks is named in INTERPOSE_ADDED. */
VISIBLE char *const *pass_variables(char *const *given, const char *path, char *const *words, struct passed_variables *passed);
