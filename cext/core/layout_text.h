/* How records are packed, as text for log.xml: the elements `head`, `control` and `data`. */
#pragma once

#include <stddef.h>

#include "core/visible.h"

enum { LAYOUT_BYTES = 65536 }; /* more than the text needs */

/* Write it, without a terminating zero, and return its length. */
VISIBLE size_t layout_write(char text[LAYOUT_BYTES]);
