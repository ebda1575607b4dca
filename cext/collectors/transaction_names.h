/* The names that collectors give transactions. */
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "collectors/claimed_names.h"
#include "collectors/collectors.h"
#include "core/fields.h"
#include "core/recorder.h"
#include "core/visible.h"

/* The innermost call in progress that is a transaction, or 0. */
static inline uint32_t transaction_around(const struct thread_record *record, const struct span *span)
{
    if (LIKELY(record->fields.depth == 1 && span->index == 0 && !boundary_of(span->intrinsic)))
        return 0;
    for (uint32_t index = record->fields.depth; index-- > 0;)
        if (record->open[index].call && boundary_of(record->open[index].intrinsic) & BOUNDARY_IS)
            return record->open[index].call;
    return 0;
}

/* A name given inside a transaction lasts until that ends; one given outside lasts until it changes. */
static inline struct named *named_here(struct thread *thread, const struct span *span)
{
    uint32_t within = transaction_around(thread->record, span);
    struct named *named = &thread->named[within ? NAMED_INSIDE : NAMED_OUTSIDE];
    if (named->within != within) {
        named->within = within;
        named->bytes = 0;
        named->text[0] = 0;
    }
    return named;
}

/* An event that takes no time: from then on the thread's transaction has that name, or none. */
void record_name(const struct span *span, const struct named *named, bool is_later);

/* Whether it is the name that a collector gives now, as far as there is room for it; none is no name. */
static __attribute__((always_inline)) inline bool is_named(const struct named *named, const char *name)
{
    if (name == named->text)
        return true;
    if (!name)
        return !named->bytes;
    if (UNLIKELY(named->bytes == NAMED_BYTES - 1))
        return strncmp(name, named->text, NAMED_BYTES - 1) == 0;
    return is_text(name, named->text, named->bytes + 1);
}

/* Tasks take turns on a thread: only inside of a transaction of their own has a name a place. True if the name is to
   be recorded behind the call: a read of the terminal begins a transaction, and it is that which is named. */
bool change_name(const struct span *span, struct named *named, const char *name);
