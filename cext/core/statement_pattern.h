/* Statements that differ from an earlier one in literals alone have the number of its normalised text. They are found
   by comparing what is between the literals, which is several times quicker than normalising them again. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/statement.h"
#include "core/visible.h"

enum { PATTERNS = 8, PATTERN_LITERALS = 15 };

/* The literals of a statement that others may stand in place of (core/statement_noting.c): numbers of digits alone, and
   texts in single quotes without anything that has a meaning to any dialect. All else has to be the same. */
struct statement_literals {
    uint32_t count; /* more than PATTERN_LITERALS: they were too many */
    struct {
        uint16_t begin, end; /* of a text, within its quotes */
        bool is_text;
    } at[PATTERN_LITERALS];
};

struct statement_pattern {
    uint32_t number; /* of the normalised text; written last, 0: none */
    uint32_t serial; /* of the recording that has it */
    uint32_t dialect;
    uint32_t bytes;
    struct statement_literals literals;
    char sql[STATEMENT_SHORT];
};

/* The last ones of a thread. */
struct statement_patterns {
    uint32_t next;
    struct statement_pattern pattern[PATTERNS];
};

/* The number of the statement, 0 if it is like none of these. */
VISIBLE uint32_t pattern_find(const struct statement_patterns *patterns, uint32_t serial, enum dialect dialect,
                              const char *sql, size_t bytes);

/* Keep a statement of at most STATEMENT_SHORT bytes, if it has such literals. */
VISIBLE void pattern_keep(struct statement_patterns *patterns, uint32_t serial, enum dialect dialect, const char *sql,
                          size_t bytes, const struct statement_literals *literals, uint32_t number);

/* The same as statement_normalise, and these literals. */
VISIBLE size_t statement_normalise_noting(enum dialect dialect, const char *sql, size_t bytes, char *text, size_t room,
                                          bool *literals, struct statement_literals *noted);
