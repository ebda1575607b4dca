/* The dialogue: what terminals showed and what was typed, in a file of its own. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/fields.h"
#include "core/visible.h"

/* Set how many bytes of it each process keeps from now on; 0: none. */
VISIBLE void dialogue_choose(uint64_t limit_bytes);

/* Another recording begins, or that of a child: there is no file yet. */
void dialogue_begin(void);

/* Keep a piece, redacted; count it if there is no room. */
VISIBLE void dialogue_keep(const struct piece *piece, const char *text, size_t bytes);
