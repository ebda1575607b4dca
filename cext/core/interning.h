/* Numbers for texts, places in the code and stacks. Known ones are found without a lock; new ones are written by
   one thread at a time. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/fields.h"
#include "core/visible.h"

/* The numbers with which a process begins: a forked child continues its parent's, so known ones stay valid. */
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

/* 0 if there is no room. */
VISIBLE uint32_t string_intern(const char *text, size_t bytes);

/* The detail of a call; there may be as many as calls. 0 if its event will be dropped. Once texts have taken their
   share of space, new ones become "(other)", and are counted. */
VISIBLE uint32_t detail_intern(const char *text, size_t bytes);

/* The same for one that is known; 0 if it is not. */
uint32_t detail_find(const char *text, size_t bytes);

/* Stacks get new numbers less often; it costs memory. */
VISIBLE void stacks_keep_many(void);

/* Texts of this process may take a part of the ring, if there is one; in any case of the pool and the limit. */
void interning_choose(uint64_t ring_bytes);

VISIBLE uint32_t site_add(const struct site *site);
VISIBLE uint32_t stack_intern(uint32_t site, uint32_t outer, uint32_t cut);
