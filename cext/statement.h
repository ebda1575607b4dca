/* SQL without its literals: strings, numbers and blobs become `?` before anything is stored. */
#pragma once

#include <stddef.h>

#include "visible.h"

/* Write the normalised `sql` to `text` (at most `room` bytes) and give its length. Comments are dropped, white space
   is one space. Quoted by double quotes is an identifier only where one must stand (after FROM, INTO, AS, a dot and
   the like, or before a dot); elsewhere it may be a string (MySQL, sqlite's misfeature) and becomes `?` too. After a
   string in which a backslash stands before a quote, all the rest is one `?`. */
VISIBLE size_t statement_normalise(const char *sql, size_t bytes, char *text, size_t room);
