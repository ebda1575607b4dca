/* Functions with @transaction that are not marked: the log says how many. */
#pragma once

#include "core/visible.h"

/* One more, and why: text for the log. */
VISIBLE void unmarked_add(const char *why);
