/* Numbers for statements: for their normalised texts, found by the whole statement, or by an earlier one like it. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/statement.h"
#include "core/visible.h"

/* The cache is empty. 0 or the error's number. */
int statements_begin(void);

/* The number of the normalised text of a statement, and whether it had literals. If a `key` identifies the whole
   statement (0: none), it is found by that the next time. Its time is cost of recording, for short statements by
   samples. */
VISIBLE uint32_t statement_find(uint64_t key);
VISIBLE uint32_t statement_intern(uint64_t key, enum dialect dialect, const char *sql, size_t bytes, bool *literals);
