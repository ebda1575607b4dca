#include "collectors/collecting.h"

#include <errno.h>

#include "collectors/collected_places.h"
#include "collectors/collector_calls.h"
#include "collectors/transaction_names.h"
#include "cpython/sites.h"

/* `made` is for what is made of those in Python; NULL if there are none. `times`: how many calls its time stands for;
   0 if it is not read. `is_alone`: but one is wanted, for which this is compiled once more without a loop. */
static __attribute__((always_inline)) inline enum collected run_collectors(struct span *span,
                                                                           const struct identified *place,
                                                                           uint32_t wanted, const void *native,
                                                                           bool is_here, PyObject **made,
                                                                           uint32_t times, bool is_alone)
{
    struct thread *thread = span->thread;
    struct reading begin = {0, 0}, last = {0, 0};
    wanted &= collectors.on;
    if (!wanted && UNLIKELY(!span_open(span))) /* by a collector that is asked once per place */
        return COLLECTED_GONE;
    if (times)
        begin = last = clock_read(&thread->clock);
    struct named *named = named_here(thread, span);
    struct told told;
    struct interpose_area *area = &told.area;
    uint32_t by = 0;
    fill_area(&told, place, span, native, is_here);
    area->transaction = named->bytes ? named->text : NULL;
    while (LIKELY(wanted)) {
        struct collector *collector = &collectors.all[__builtin_ctz(wanted)];
        if (run_collector(collector, &told, span, made ? &made[collector->place] : NULL))
            by = collector->name;
        if (UNLIKELY(!span_open(span)))
            return COLLECTED_GONE;
        wanted = is_alone ? 0 : wanted & (wanted - 1);
        if (wanted)
            tell_next(&told, collector, span, is_here);
        if (times) {
            struct reading now = clock_read(&thread->clock);
            look_at_cost(collector, now.cpu_ns - last.cpu_ns);
            last = now;
        }
    }
    bool later = UNLIKELY(!is_named(named, area->transaction)) && change_name(span, named, area->transaction);
    uint32_t stack = span->stack;
    if (place->recorded)
        span->stack = place->recorded;
    if (by && area->module && *area->module) {
        span->stack = claim_stack(stack, claim_of(&told, by));
    }
    if (times)
        charge_collectors(thread, span->index, begin, last, times);
    return later ? COLLECTED_LATER_NAMED : COLLECTED;
}

static __attribute__((noinline)) enum collected run_timed(struct span *span, uint32_t wanted, const void *native,
                                                          bool is_here)
{
    uint32_t times = collectors.turn;
    collectors.turn = 0;
    return run_collectors(span, identified_place(span, native, is_here), wanted, native, is_here, NULL, times, false);
}

/* Collectors in C alone. */
static __attribute__((noinline)) enum collected run_native(struct span *span, uint32_t wanted, const void *native,
                                                           bool is_here)
{
    return run_collectors(span, identified_place(span, native, is_here), wanted, native, is_here, NULL, 0, false);
}

static __attribute__((always_inline)) inline enum collected run_alone(struct span *span, uint32_t wanted,
                                                                      const void *native, bool is_here)
{
    return run_collectors(span, identified_place(span, native, is_here), wanted, native, is_here, NULL, 0, true);
}

/* Other threads may run meanwhile, and the data of the place may go. A current exception stays. */
static __attribute__((noinline)) enum collected run_with_python(struct span *span, uint32_t wanted, const void *native,
                                                                bool is_here)
{
    PyObject *made[COLLECTORS_AT_MOST] = {NULL};
    struct raised raised = raised_keep();
    struct identified place = *identified_place(span, native, is_here);
    for (unsigned index = 0; index < IDENTIFIED_TEXTS; index++)
        Py_XINCREF(place.texts[index]);
    enum collected collected = run_collectors(span, &place, wanted, native, is_here, made, 1, false);
    for (unsigned index = 0; index < COLLECTORS_AT_MOST; index++)
        if (made[index])
            collectors.release(made[index]);
    for (unsigned index = 0; index < IDENTIFIED_TEXTS; index++)
        Py_XDECREF(place.texts[index]);
    raised_restore(raised);
    return span_open(span) ? collected : COLLECTED_GONE;
}

enum collected collect(struct span *span, const void *native, bool is_here)
{
    struct thread *thread = span->thread;
    uint32_t asked = collectors.per[INTERPOSE_PER_EVENT];
    if (UNLIKELY(boundary_of(span->intrinsic)))
        asked |= collectors.per[INTERPOSE_PER_TRANSACTION];
    uint32_t wanted = collectors.on & asked;
    bool is_about_sites = (collectors.on & collectors.per[INTERPOSE_PER_SITE]) || pseudo_sections.count;
    if (thread->quiet || (!wanted && !is_about_sites))
        return COLLECTED;
    int saved = errno;
    thread->quiet++;
    enum collected collected;
    if (wanted & collectors.in_python)
        collected = run_with_python(span, wanted, native, is_here);
    else if (UNLIKELY(++collectors.turn >= collectors.sampled))
        collected = run_timed(span, wanted, native, is_here);
    else if (LIKELY(wanted && !(wanted & (wanted - 1))))
        collected = run_alone(span, wanted, native, is_here);
    else
        collected = run_native(span, wanted, native, is_here);
    if (thread->quiet) /* a forked child's is 0 */
        thread->quiet--;
    errno = saved;
    return collected;
}

void record_named(struct span *span, uint64_t bytes, uint32_t error, const void *native, bool is_here)
{
    if (UNLIKELY(!recorded_state())) { /* they are Python code of that interpreter alone */
        span_record(span, bytes, error);
        return;
    }
    enum collected collected = collect(span, native, is_here);
    if (collected == COLLECTED_GONE)
        return;
    span_record(span, bytes, error);
    if (UNLIKELY(collected == COLLECTED_LATER_NAMED))
        record_name(span, named_here(span->thread, span), true);
}
