/* SQL without its literals: strings, numbers and blobs become `?` before anything is stored. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "core/visible.h"

/* The SQL dialect, known from the driver. */
#define DIALECTS(X) \
    X(any,        "not known: what is a text in one dialect and none in another is hidden, with all that follows") \
    X(sqlite,     "") \
    X(postgresql, "") \
    X(mysql,      "of MySQL and MariaDB") \
    X(oracle,     "")

#define NUMBER_OF_DIALECT(name, meaning) DIALECT_##name,
enum dialect { DIALECTS(NUMBER_OF_DIALECT) };

/* In bytes: up to here a statement is normalised about as quickly as Python hashes it. */
enum { STATEMENT_SHORT = 512 };

/* Write the normalised `sql` to `text` (at most `room` bytes), give its length, and tell whether there were literals.
   Comments are dropped, white space is one space. What cannot be decided is `?`, and where it cannot be told where a
   text ends, all the rest is one `?`:

   In double quotes are names in PostgreSQL and Oracle, texts in MySQL; in SQLite they are names only where one must
   stand (after FROM, INTO, AS, a dot and the like, or before a dot). A backslash before a quote may or may not escape it
   in MySQL and PostgreSQL. Secrets may be bare words: all the rest is one `?` behind the sign of PRAGMA key = and of
   SET name =, behind IDENTIFIED and ATTACH … KEY.

   However many they are, the literals or placeholders of IN (…) and ARRAY[…] become `(?, …)`, and the rows after the
   first of VALUES (…), (…) or IN ((…), (…)) become `…`: else a list of every length would be a statement of its own. So
   would each savepoint that a library names by a number: such names become `?`. */
VISIBLE size_t statement_normalise(enum dialect dialect, const char *sql, size_t bytes, char *text, size_t room,
                                   bool *literals);
