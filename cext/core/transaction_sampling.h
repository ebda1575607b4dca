/* Sampling by transaction: of the outermost transactions of a process one in so many is kept, and what is called within
   the others is passed over.

   Each is decided when it begins, by a number that follows from the seed, the process's lineage and how many began
   before it: the same seed and the same order give the same choice. One that is passed over stands in the table of calls
   in progress as others do, under the number that its intrinsic has for this, so that suspending it, ending it and what
   finds its name go the same ways; its own event is recorded, with that number, and so it is known how many there were,
   of which names, and how long they took. Transactions inside of another share its fate, and leave no event where that
   is passed over. */
#pragma once

#include "core/levels.h"
#include "core/recorder.h"

/* What becomes of a transaction; also of that in which a process was started, for what it calls outside of its own. */
enum fate { FATE_none, FATE_kept, FATE_passed_over };

enum { IS_PASSED_OVER = 255 };

struct chosen {
    uint32_t one_in;  /* 0: all are kept */
    uint32_t outside; /* enum fate */
    uint64_t seed, begun;
    uint8_t further[COUNTED_NUMBERS]; /* of an intrinsic: how much further its number for those passed over is; that number
                                         itself has IS_PASSED_OVER, what is no transaction 0 */
};
VISIBLE extern struct chosen chosen;

/* One in so many from now on, 0: all. The process was started within a transaction with that fate, or none. */
VISIBLE void chosen_begin(uint64_t seed, uint32_t one_in, const char *lineage, enum fate outside);

/* A forked child of that lineage goes on with the fate of what it was forked within. */
void chosen_forked(const char *lineage, enum fate outside);

/* The intrinsic with that number has another, so much further, for transactions that are passed over. */
VISIBLE void chosen_know(uint32_t number, uint32_t further);

/* What becomes of a transaction that begins now. */
VISIBLE enum fate chosen_decide(void);

static inline unsigned chosen_further(uint32_t intrinsic)
{
    return intrinsic < COUNTED_NUMBERS ? chosen.further[intrinsic] : 0;
}

static inline bool is_number_passed_over(uint32_t intrinsic)
{
    return chosen_further(intrinsic) == IS_PASSED_OVER;
}

/* Is the intrinsic's number that, or its number for those that are passed over? */
static inline bool is_number_or_further(uint32_t number, uint32_t intrinsic)
{
    return number == intrinsic || (is_number_passed_over(number) && number - chosen_further(intrinsic) == intrinsic);
}

/* What becomes of the innermost transaction of the first `depth` calls in the table; FATE_none where there is none. */
static inline enum fate chosen_below(const struct thread_record *record, uint32_t depth)
{
    for (uint32_t index = depth < OPEN_CALLS ? depth : OPEN_CALLS; index-- > 0;) {
        unsigned further = record->open[index].call ? chosen_further(record->open[index].intrinsic) : 0;
        if (further)
            return further == IS_PASSED_OVER ? FATE_passed_over : FATE_kept;
    }
    return FATE_none;
}

/* What becomes of the transaction in progress; where there is none, of what is outside of any. */
static inline enum fate chosen_fate(const struct thread_record *record)
{
    enum fate within = chosen_below(record, record->fields.depth);
    return within == FATE_none ? (enum fate)chosen.outside : within;
}

/* Is what the thread calls now to be passed over? */
static inline bool is_passed_over(const struct thread *thread)
{
    return chosen_fate(thread->record) == FATE_passed_over;
}

/* The number under which a call of the intrinsic begins: of a transaction it is decided now, where no other is around. */
static inline uint32_t chosen_number(uint32_t intrinsic, const struct thread *thread)
{
    unsigned further = LIKELY(!chosen.one_in) ? 0 : chosen_further(intrinsic);
    if (LIKELY(further == 0 || further == IS_PASSED_OVER))
        return intrinsic;
    enum fate around = chosen_below(thread->record, thread->record->fields.depth);
    enum fate fate = around == FATE_none ? chosen_decide() : around;
    return fate == FATE_passed_over ? intrinsic + further : intrinsic;
}

/* Is it a transaction inside of one that is passed over? It leaves no event. */
static inline bool is_inside_passed_over(const struct span *span)
{
    return UNLIKELY(is_number_passed_over(span->intrinsic)) &&
           chosen_below(span->thread->record, span->index) == FATE_passed_over;
}
