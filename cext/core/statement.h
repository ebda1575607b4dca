/* SQL without its literals: strings, numbers and blobs become `?` before anything is stored. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "core/visible.h"

/* In bytes: up to here a statement is normalised about as quickly as Python hashes it. */
enum { STATEMENT_SHORT = 512 };

/* Write the normalised `sql` to `text` (at most `room` bytes), give its length, and tell whether there were literals.
   Comments are dropped, white space is one space. Quoted by double quotes is an identifier only where one must stand
   (after FROM, INTO, AS, a dot and the like, or before a dot); elsewhere it may be a string (MySQL, sqlite's misfeature)
   and becomes `?` too. After a string in which a backslash stands before a quote, all the rest is one `?`.

   After PRAGMA key = and its like all the rest is one `?`.

   However many they are, the literals or placeholders of IN (…) and ARRAY[…] become `(?, …)`, and the rows after the
   first of VALUES (…), (…) or IN ((…), (…)) become `…`: else a list of every length would be a statement of its own. */
VISIBLE size_t statement_normalise(const char *sql, size_t bytes, char *text, size_t room, bool *literals);
