/* The thread's table of calls in progress, searched; and of which kind each number of an intrinsic is. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "core/fields.h"
#include "kinds.h"
#include "core/recorder.h"
#include "core/visible.h"

/* The kinds of numbers of intrinsics, each plus one; higher numbers have none. */
enum { NUMBERS_KNOWN = 4096 };

extern uint8_t number_kinds[NUMBERS_KNOWN];

void number_is_of(uint32_t number, enum kind kind);

void forget_number_kinds(void);

static inline bool is_number_of(uint32_t number, enum kind kind)
{
    return number < NUMBERS_KNOWN && number_kinds[number] == kind + 1;
}

static inline bool is_idle_number(uint32_t number)
{
    return is_number_of(number, KIND_idle);
}

/* Is the call that is made inside one of that kind? */
static inline bool inside(const struct thread *thread, enum kind kind)
{
    uint32_t depth = thread->record->fields.depth;
    if (LIKELY(depth == 0 || depth > OPEN_CALLS))
        return false;
    return is_number_of(thread->record->open[depth - 1].intrinsic, kind);
}

/* Is a request being served, or a task run, by the thread? */
bool is_serving(const struct thread *thread);

/* The innermost call in progress of an intrinsic, from the entry `lowest` on, as it was begun; false if there is
   none. `any_detail`: whatever its detail. */
static const uint32_t any_detail = UINT32_MAX;

bool find_open(struct span *span, struct thread *thread, uint32_t intrinsic, uint32_t detail, uint32_t lowest);

/* Where in the table a call is; the table's size where it is not there. */
uint32_t place_in_table(const struct thread_record *record, uint32_t call);
