/* Which descendants are recorded: all, none, or those with a command line or lineage that matches a pattern. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "core/visible.h"

/* Set `on`, `off`, or `=` with a POSIX extended regular expression, for this process with the command line
   `command`; return what is wrong with it, or NULL. The text stays until the next call. */
VISIBLE const char *follow_choose(const char *text, const char *command);

/* Is a descendant with this command line and lineage to be recorded? */
VISIBLE bool follow_matches(const char *lineage);

/* Whether none are. */
VISIBLE bool follow_is_off(void);
