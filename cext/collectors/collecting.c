#include "collectors/collecting.h"

#include <errno.h>
#include <string.h>

#include "collectors/collected_places.h"
#include "core/clock.h"
#include "core/fields.h"
#include "core/intern.h"
#include "cpython/frame.h"

/* --- one of them */

static bool call_python(struct collector *collector, struct interpose_area *area, PyObject **made)
{
    frame *running = frame_innermost(running_state());
    if (UNLIKELY(interpreter_ends()))
        return true;
    if (!running || frame_code(running) != area->code)
        area->code = NULL;
    bool looks = ++collector->calls % MEMORY_LOOK == 0;
    int64_t kept_blocks = 0;
    bool done = collectors.call(collector, area, made, looks ? &kept_blocks : NULL);
    if (looks)
        look_at_memory(collector, kept_blocks);
    if (!done && ++collector->raised >= RAISES_AT_MOST)
        collector_switch_off(collector, "it raised an error ten times");
    return done;
}

static void note_identifier(struct collector *collector, struct interpose_area *area)
{
    PyObject *type, *value, *traceback;
    area->identifier[INTERPOSE_IDENTIFIER_BYTES - 1] = 0;
    uint64_t hash = hash_bytes(area->identifier, strlen(area->identifier));
    if (hash == collector->identifier)
        return;
    PyErr_Fetch(&type, &value, &traceback);
    collectors.identify(collector, area->identifier);
    PyErr_Restore(type, value, traceback);
    collector->identifier = hash;
}

/* As a call in progress, so that one that hangs is seen. The entry is gone where the process was forked meanwhile. */
static uint32_t open_collector(const struct span *span, const struct collector *collector)
{
    const struct thread *thread = span->thread;
    struct thread_record *record = thread->record;
    uint32_t index = record->fields.depth;
    if (UNLIKELY(index >= OPEN_CALLS))
        return OPEN_CALLS;
    struct open_call *open = &record->open[index];
    open->start_ns = span->begin.wall_ns + span->wall_ns;
    open->start_cpu_ns = thread->clock.last_cpu_ns;
    open->inner_wall_ns = open->inner_cpu_ns = 0;
    open->call = thread->calls + 1;
    open->intrinsic = collectors.running;
    open->stack = 0;
    open->detail = collector->name;
    record->fields.made++;
    __atomic_store_n(&record->fields.depth, index + 1, __ATOMIC_RELEASE);
    return index;
}

static void close_collector(struct thread_record *record, uint32_t index)
{
    if (UNLIKELY(index >= OPEN_CALLS || record->fields.depth <= index))
        return;
    record->fields.made--;
    record->open[index].call = 0;
    if (LIKELY(record->fields.depth == index + 1))
        __atomic_store_n(&record->fields.depth, index, __ATOMIC_RELEASE);
    else
        close_call(record, index);
}

static struct claims claims_of(const struct interpose_area *area)
{
    return (struct claims){area->module, area->base, area->size, area->section, area->statement};
}

static void claims_restore(struct interpose_area *area, const struct claims *claims)
{
    area->module = claims->module;
    area->section = claims->section;
    area->base = claims->base;
    area->size = claims->size;
    area->statement = claims->statement;
}

bool run_collector(struct collector *collector, struct told *told, const struct span *span, PyObject **made)
{
    struct interpose_area *area = &told->area;
    const struct claims *before = &told->before;
    const char *transaction = area->transaction;
    struct thread_record *record = span->thread->record;
    uint32_t index = open_collector(span, collector);
    area->identifier[0] = 0;
    bool done = true;
    if (collector->collect) {
        area->work = collector->work;
        collector->collect(area);
        collector->work = area->work;
    } else
        done = call_python(collector, area, made);
    if (UNLIKELY(span->thread->record != record))
        return false;
    close_collector(record, index);
    if (UNLIKELY(!done)) {
        claims_restore(area, before);
        area->transaction = transaction;
        return false;
    }
    if (UNLIKELY(area->identifier[0]))
        note_identifier(collector, area);
    if (area->module == before->module && area->base == before->base && area->size == before->size)
        return area->section != before->section || area->statement != before->statement;
    const char *wrong = wrong_with_claim(area, told->address, collector->place);
    if (LIKELY(!wrong))
        return true;
    note_wrong(collector, wrong, false);
    claims_restore(area, before);
    return false;
}

/* --- the place of a call */

/* What is so, whatever somebody wrote there. `is_here`: the code that called runs, and so lives. */
static void tell(struct told *told, const struct span *span, bool is_here)
{
    struct interpose_area *area = &told->area;
    const struct interpose_area *known = &told->place->area;
    area->version = INTERPOSE_COLLECTOR_VERSION;
    area->area_bytes = sizeof *area;
    area->thread = span->thread->record->fields.tid;
    area->task = span->task;
    area->code = is_here ? known->code : NULL;
    area->file = known->file;
    area->function = known->function;
    area->line = known->line;
    area->address = told->address;
    area->wall_ns = span->wall_ns;
    area->cpu_ns = span->cpu_ns;
}

void fill_area(struct told *told, const struct identified *place, const struct span *span, const void *native,
               bool is_here)
{
    told->place = place;
    told->address = place->area.code ? place->area.line : (uint64_t)(uintptr_t)native;
    tell(told, span, is_here);
    told->before = claims_of(&place->area);
    claims_restore(&told->area, &told->before);
    told->area.transaction = NULL;
}

static void keep_scratch(const char **text, const struct interpose_area *area, char made[INTERPOSE_SCRATCH_BYTES])
{
    if (*text >= area->scratch && *text < area->scratch + INTERPOSE_SCRATCH_BYTES)
        *text = made + (*text - area->scratch);
}

void tell_next(struct told *told, const struct collector *before, const struct span *span, bool is_here)
{
    struct interpose_area *area = &told->area;
    char *made = told->made[before->place];
    if (before->collect) {
        memcpy(made, area->scratch, INTERPOSE_SCRATCH_BYTES);
        keep_scratch(&area->module, area, made);
        keep_scratch(&area->section, area, made);
        keep_scratch(&area->transaction, area, made);
    }
    tell(told, span, is_here);
    told->before = claims_of(area);
}

struct claim claim_of(const struct told *told, uint32_t collector)
{
    const struct interpose_area *area = &told->area;
    return (struct claim){.module = area->module,
                          .section = area->section ? area->section : told->place->area.function,
                          .line = area->statement ? area->statement : told->place->area.line,
                          .collector = collector,
                          .is_forced = is_forced(area)};
}

/* --- all of them */

/* `made` is for what is made of those in Python; NULL where there are none. `times`: how many calls its time stands for;
   0 where it is not read. `is_alone`: but one is wanted, for which this is compiled once more without a loop. */
static __attribute__((always_inline)) inline enum collected run_collectors(struct span *span,
                                                                           const struct identified *place,
                                                                           uint32_t wanted, const void *native,
                                                                           bool is_here, PyObject **made,
                                                                           uint32_t times, bool is_alone)
{
    struct thread *thread = span->thread;
    struct reading begin = {0, 0}, last = {0, 0};
    wanted &= collectors.on;
    if (!wanted && UNLIKELY(!span_open(span))) /* by one that is asked once for a place */
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

/* Others may run meanwhile, and what is known of the place may go. What is raised stays raised. */
static __attribute__((noinline)) enum collected run_with_python(struct span *span, uint32_t wanted, const void *native,
                                                                bool is_here)
{
    PyObject *made[COLLECTORS_AT_MOST] = {NULL}, *type = NULL, *value, *traceback;
    bool raised = PyErr_Occurred();
    if (raised)
        PyErr_Fetch(&type, &value, &traceback);
    struct identified place = *identified_place(span, native, is_here);
    for (unsigned index = 0; index < IDENTIFIED_TEXTS; index++)
        Py_XINCREF(place.texts[index]);
    enum collected collected = run_collectors(span, &place, wanted, native, is_here, made, 1, false);
    for (unsigned index = 0; index < COLLECTORS_AT_MOST; index++)
        if (made[index])
            collectors.release(made[index]);
    for (unsigned index = 0; index < IDENTIFIED_TEXTS; index++)
        Py_XDECREF(place.texts[index]);
    if (raised)
        PyErr_Restore(type, value, traceback);
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
