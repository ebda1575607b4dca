/* Sampling by transaction: one in N of a process's outermost transactions is kept, and calls within the others are
   passed over. Each is decided when it begins, by a number that follows from the seed, the process's lineage and how
   many began before: the same seed and order give the same choice. One that is passed over is in the table of calls in
   progress like others, under its intrinsic's number for this, so suspending it, ending it and finding its name work
   in the same way. Its own event is recorded, with that number, so the number of transactions, their names and
   durations are known. Transactions inside another share its fate, and leave no event if it is passed over. */
#pragma once

#include "core/levels.h"
#include "core/recorder.h"

/* The fate of a transaction; also of the one in which a process was started, for calls outside of its own. */
enum fate { FATE_none, FATE_kept, FATE_passed_over };

enum { IS_PASSED_OVER = 255 };

struct chosen {
    uint32_t one_in;  /* 0: all are kept */
    uint32_t outside; /* enum fate */
    uint64_t seed, begun;
    uint8_t further[COUNTED_NUMBERS]; /* of an intrinsic: the distance to its number for those passed over; that number
                                         itself has IS_PASSED_OVER, anything but a transaction 0 */
};
VISIBLE extern struct chosen chosen;

/* One in this many from now on, 0: all. The process was started within a transaction with that fate, or none. */
VISIBLE void chosen_begin(uint64_t seed, uint32_t one_in, const char *lineage, enum fate outside);

/* A forked child of that lineage continues with the fate of the transaction in which it was forked. */
void chosen_forked(const char *lineage, enum fate outside);

/* The intrinsic with that number has another one, at this distance, for transactions that are passed over. */
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

/* Whether the number is the intrinsic's, or its number for those passed over. */
static inline bool is_number_or_further(uint32_t number, uint32_t intrinsic)
{
    return number == intrinsic || (is_number_passed_over(number) && number - chosen_further(intrinsic) == intrinsic);
}

/* The fate of the innermost transaction of the first `depth` calls in the table; FATE_none without one. */
static inline enum fate chosen_below(const struct thread_record *record, uint32_t depth)
{
    for (uint32_t index = depth < OPEN_CALLS ? depth : OPEN_CALLS; index-- > 0;) {
        unsigned further = record->open[index].call ? chosen_further(record->open[index].intrinsic) : 0;
        if (further)
            return further == IS_PASSED_OVER ? FATE_passed_over : FATE_kept;
    }
    return FATE_none;
}

/* The fate of the transaction in progress or, without one, that for calls outside of any. */
static inline enum fate chosen_fate(const struct thread_record *record)
{
    enum fate within = chosen_below(record, record->fields.depth);
    return within == FATE_none ? (enum fate)chosen.outside : within;
}

/* Whether the thread's calls are to be passed over now. */
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

/* Whether it is a transaction inside one that is passed over. It leaves no event. */
static inline bool is_inside_passed_over(const struct span *span)
{
    return UNLIKELY(is_number_passed_over(span->intrinsic)) &&
           chosen_below(span->thread->record, span->index) == FATE_passed_over;
}
