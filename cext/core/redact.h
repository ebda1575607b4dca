/* What the user does not want on the disk: whatever an expression matches becomes `?` before anything is written. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "core/visible.h"

/* Set the POSIX extended regular expression to redact from now on; an empty text: nothing. Returns what is wrong
   with it, or NULL. */
VISIBLE const char *redact_choose(const char *expression);

/* The text with `?` in the place of all that matches, and its length, to be freed; NULL if nothing does, or where
   there is no memory, which `*bytes` being 0 tells: then the text is not to be written at all. */
VISIBLE char *redact(const char *text, size_t *bytes);

/* Is there anything to be looked for? */
VISIBLE bool redact_is_on(void);
