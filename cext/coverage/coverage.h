/* Statement coverage, the part without Python: tables of places that can be executed, in mapped files. All of it
   runs with the interpreter lock held. */
#pragma once

#include "core/recorder.h"

/* How many places and branches of a code object fit into one window of their files, and have one record. */
enum { PIECE_PLACES = 1 << 15, PIECE_BRANCHES = 1 << 14 };

struct coverage_piece {
    uint32_t number, first_place; /* in the files */
    struct covered_place *places;
    struct covered_branch *branches;
};

/* The places and branches of a code object in one context. */
struct coverage_table {
    struct coverage_table *next; /* of the same code, in another context */
    uint32_t serial;             /* of its files */
    uint32_t context;
    struct coverage_piece piece[];
};

struct coverage {
    uint32_t on;
    uint32_t serial; /* of the files; a forked child has files of its own */
    uint32_t branches, contexts, probes; /* are wanted */
    uint32_t *ours; /* in memory that a forked child finds zeroed: the files are this process's */
};

VISIBLE extern struct coverage coverage;

/* Switch on. 0 or the error's number. */
VISIBLE int coverage_on(bool branches, bool contexts, bool probes);

VISIBLE void coverage_off(void);

/* Whether this process has its files. A forked child makes them; if that fails, coverage is off. */
VISIBLE bool coverage_begin_again(void);

/* What a code object's record says of it. */
struct coverage_shape {
    uint32_t file, function, module, first_line, own, context, has_columns;
    uint32_t places, branches;
};

/* Records for a code object with its places and branches; NULL if there is no room, which is counted. */
VISIBLE struct coverage_table *coverage_table(const struct coverage_shape *shape);

/* The name of the innermost transaction that the calling thread is in, a number in strings, or 0. */
VISIBLE uint32_t coverage_context(void);

/* Places and branches by their order in the code object, from 0. */
static inline struct covered_place *place_in(struct coverage_table *table, uint32_t index)
{
    return &table->piece[index / PIECE_PLACES].places[index % PIECE_PLACES];
}

static inline uint32_t place_number(const struct coverage_table *table, uint32_t index)
{
    return table->piece[index / PIECE_PLACES].first_place + index % PIECE_PLACES;
}

static inline struct covered_branch *branch_in(struct coverage_table *table, uint32_t index)
{
    return &table->piece[index / PIECE_BRANCHES].branches[index % PIECE_BRANCHES];
}

static inline bool coverage_is_here(void)
{
    return LIKELY(coverage.on && *coverage.ours) || coverage_begin_again();
}
