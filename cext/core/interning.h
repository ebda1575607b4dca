/* Numbers for texts, places in the code and stacks. What was numbered before is found without a lock; what is new is
   written, by one thread at a time. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/fields.h"
#include "core/statement.h"
#include "core/visible.h"

/* The numbers with which a process begins: a forked child goes on where its parent was, so that what is known stays
   true. */
struct first_numbers {
    uint32_t string, site, stack;
};

/* The caches are empty. 0 or the error's number. */
int interning_begin(void);

/* Create the files, from those numbers on. 0 or the error's number. */
int interning_create(const char *directory, struct first_numbers first);

/* The numbers that come next. */
struct first_numbers interning_next(void);

/* The same as string_intern for who holds the exclusive lock. */
uint32_t string_intern_held(const char *text, size_t bytes);

/* 0 where there is no room. */
VISIBLE uint32_t string_intern(const char *text, size_t bytes);

/* What a call was about: there may be as many texts as calls. 0 where its event will be dropped; where texts have taken
   what they may, "(other)" stands for those that are new, and they are counted. */
VISIBLE uint32_t detail_intern(const char *text, size_t bytes);

/* Texts of this process may take a part of the ring, if there is one; in any case of the pool and the limit. */
void interning_choose(uint64_t ring_bytes);

VISIBLE uint32_t site_add(const struct site *site);
VISIBLE uint32_t stack_intern(uint32_t site, uint32_t outer, uint32_t cut);

/* The number of the normalised text of a statement, and whether literals were in it. Where a `key` stands for the whole
   statement (0: none does) it is found by it the next time. What it takes is own cost, of short statements by samples. */
VISIBLE uint32_t statement_find(uint64_t key);
VISIBLE uint32_t statement_intern(uint64_t key, enum dialect dialect, const char *sql, size_t bytes, bool *literals);
