/* Which calls are recorded at all: the founder's file `filter`, written by interpose/config/filters.py. It is read
   when a recording begins, and again when the control page announces another. Every class of rules in it must accept a
   call: one of the rules of the class that include, none of those that exclude. What depends on a call site is decided
   once for it (hooks/filtered_places.h). */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/fields.h"
#include "core/levels.h"

struct thread;

/* What is known about a call site. */
struct call_site {
    const char *module, *file, *function;
    uint32_t line;
};

/* What the shims look at. */
struct filter {
    uint32_t on;      /* there is any rule */
    uint32_t serial;  /* decisions by earlier ones are void */
    uint32_t changes; /* the control page's, as of when it was read */
    bool none;        /* nothing of this process is recorded */
    bool by_site, by_within, asks_within, by_transaction, by_thread, by_block, by_time;
    bool looks; /* any of these */
    bool only_within; /* that one alone of these */
    uint8_t left_out[COUNTED_NUMBERS]; /* by the numbers of intrinsics */
};
VISIBLE extern struct filter filter;

/* Threads ask while another one puts the next filter in place: a call that begins just then is judged by either. */
static inline uint32_t filter_is_on(void)
{
    return __atomic_load_n(&filter.on, __ATOMIC_RELAXED);
}

/* For each of the flags. */
static inline bool filter_says(const bool *flag)
{
    return __atomic_load_n(flag, __ATOMIC_RELAXED);
}

/* What is decided by the rules in force belongs to the serial that was read before. */
static inline uint32_t filter_serial(void)
{
    return __atomic_load_n(&filter.serial, __ATOMIC_ACQUIRE);
}

static inline uint32_t filter_changes_taken(void)
{
    return __atomic_load_n(&filter.changes, __ATOMIC_RELAXED);
}

/* Are calls of that number left out wherever they are made? */
static inline bool is_left_out(uint32_t intrinsic)
{
    return UNLIKELY(filter_is_on()) &&
           (filter_says(&filter.none) ||
            (intrinsic < COUNTED_NUMBERS && __atomic_load_n(&filter.left_out[intrinsic], __ATOMIC_RELAXED)));
}

/* Read the filter in `directory`, for the process of that lineage (empty: the founder). The caller holds the exclusive
   lock, as for the next. */
void filter_read(const char *directory, const char *lineage, uint32_t changes);

/* Remove the filter. */
void filter_forget(void);

/* The filter in force is that of the control page after so many changes. */
void filter_take_changes(uint32_t changes);

/* An intrinsic has that number, name and kind: its calls are known to the filter from now on. */
VISIBLE void filter_know(uint32_t number, const char *name, const char *kind);

/* The number in strings of the name of a requested transaction, which stays the same however many strings there
   are; 0 for all other texts. */
uint32_t filter_number_of(const char *text, size_t bytes);

/* May a call of that site be recorded? */
VISIBLE bool filter_site(const struct call_site *site);

/* Is the function one that calls have to be made within, or one within which they are left out? */
enum { WITHIN_ASKED = 1, WITHIN_LEFT_OUT = 2 };
VISIBLE unsigned filter_within(const struct call_site *site);

/* May a call of that thread be recorded, made within calls in progress that are transactions; and at this time? */
VISIBLE bool filter_thread(const struct thread *thread);
VISIBLE bool filter_transaction(const struct thread_record *record);
VISIBLE bool filter_time(void);

/* Whether no call will be due any more; whether a call that nothing else excludes is due. The latter is counted. */
VISIBLE bool filter_block_is_over(const struct control *control);
VISIBLE bool filter_block(struct control *control);
