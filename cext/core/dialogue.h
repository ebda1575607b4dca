/* The dialogue: what terminals showed and what was typed there, in a file of its own. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/fields.h"
#include "core/visible.h"

/* From now on so many bytes of it are kept by each process; 0: none. */
VISIBLE void dialogue_choose(uint64_t limit_bytes);

/* Another recording begins, or that of a child: there is no file yet. */
void dialogue_begin(void);

/* Keep a piece, without what is to be redacted; counted where there is no room for it. */
VISIBLE void dialogue_keep(const struct piece *piece, const char *text, size_t bytes);
