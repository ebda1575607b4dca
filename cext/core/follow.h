/* Which descendants are recorded: all, none, or those whose command or lineage a pattern matches. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "core/visible.h"

/* What is wrong with `on`, `off` or `=` and an extended regular expression of POSIX; NULL where it is in order, and then
   it is in force for this process, whose command line is `command`. The text stays until the next call. */
VISIBLE const char *follow_choose(const char *text, const char *command);

/* Is a descendant with this command line and lineage to be recorded? */
VISIBLE bool follow_matches(const char *lineage);

/* Is none? */
VISIBLE bool follow_is_off(void);
