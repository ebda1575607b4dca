/* How records are packed, as text for log.xml: the elements `head`, `control` and `data`. */
#pragma once

#include <stddef.h>

#include "core/visible.h"

enum { LAYOUT_BYTES = 65536 }; /* more than the text has */

/* Write it, without a zero at the end, and return how long it is. */
VISIBLE size_t layout_write(char text[LAYOUT_BYTES]);
