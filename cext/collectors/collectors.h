/* Data collectors: the user's own code that says, at a call's end, what the program was about.

   The way of a call through here: what is known of its place (collectors/identification.h), each collector in turn, what they claim
   verified after each, so that the next sees what holds; then the stack that the call is recorded by (collectors/claims.h), and an
   event where the name of the transaction changed. It runs on the thread that called, after all else is known, and
   nothing that a collector calls is recorded. What it takes is recording's own cost. One that fails too often, or
   takes too much, is called no more; the reason is in the experiment. */
#pragma once

#define PY_SSIZE_T_CLEAN

#include "collectors/claims.h"

enum {
    RAISES_AT_MOST = 10,
    COLLECTOR_SAMPLED = 61, /* where all are in C, one call in so many is timed, and counts for all */
    COLLECTOR_KNOWN = 509,  /* the same, once their mean was looked at */
    COLLECTOR_LOOK = 256,   /* timed calls after which their mean is looked at */
    MEMORY_LOOK = 1024,     /* one call in so many is looked at for what it keeps */
    MEMORY_LOOKS = 32,      /* so many in a row that kept some are too many */
    BLOCKS_AT_MOST = 1000000, /* of memory that one call may keep */
};

static const uint64_t SLOW_CALL_NS = 250000000, SLOW_MEAN_NS = 50000;

/* What the end of a call means, by its intrinsic: bits. */
enum { BOUNDARY_IS = 1, BOUNDARY_OTHER = 2, BOUNDARY_READS = 4 };

struct collector {
    void (*collect)(struct interpose_area *area);
    PyObject *function; /* in the place of `collect`, where it is in Python */
    void *work;         /* of one in Python an object, or NULL */
    uint32_t place, name, per;
    uint32_t raised, calls, timed, kept_in_a_row;
    uint64_t cpu_ns; /* of the timed calls since the last look */
    uint64_t identifier; /* the last that was noted */
};

static struct collectors {
    struct collector all[COLLECTORS_AT_MOST];
    uint32_t count;
    uint32_t on, per[INTERPOSE_PER_SITE + 1], in_python; /* bits */
    uint32_t running, named; /* intrinsics: one is being called; a transaction got a name */
    uint32_t turn, sampled; /* calls since one was timed, and after how many the next is */
    uint8_t boundaries[COUNTED_NUMBERS]; /* by the number of an intrinsic */
    /* What takes Python: a call, with how many blocks of memory it kept if that is wanted, the object that was made for
       it, and what is to be noted. */
    int (*call)(struct collector *collector, struct interpose_area *area, PyObject **made, int64_t *kept_blocks);
    void (*release)(PyObject *made);
    void (*note)(const struct collector *collector, const char *why, int is_off);
    void (*identify)(const struct collector *collector, const char *text);
} collectors;

static inline uint32_t boundary_of(uint32_t intrinsic)
{
    return intrinsic < COUNTED_NUMBERS ? collectors.boundaries[intrinsic] : 0;
}

/* Note what is wrong with a collector. What is raised, by the program's call, stays raised. */
static __attribute__((noinline)) void note_wrong(const struct collector *collector, const char *why, bool is_off)
{
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    collectors.note(collector, why, is_off);
    PyErr_Restore(type, value, traceback);
}

static void collector_switch_off(struct collector *collector, const char *why)
{
    uint32_t bit = 1u << collector->place;
    if (!(collectors.on & bit))
        return;
    collectors.on &= ~bit;
    collectors.in_python &= ~bit;
    note_wrong(collector, why, true);
}

/* --- what it costs */

static void look_at_cost(struct collector *collector, uint64_t cpu_ns)
{
    collector->cpu_ns += cpu_ns;
    if (cpu_ns > SLOW_CALL_NS)
        collector_switch_off(collector, "a call took more than 250 ms of CPU time");
    if (++collector->timed % COLLECTOR_LOOK)
        return;
    collectors.sampled = COLLECTOR_KNOWN;
    if (collector->cpu_ns / COLLECTOR_LOOK > SLOW_MEAN_NS)
        collector_switch_off(collector, "256 calls took more than 50 us of CPU time each");
    collector->cpu_ns = 0;
}

static void look_at_memory(struct collector *collector, int64_t kept_blocks)
{
    collector->kept_in_a_row = kept_blocks > 0 ? collector->kept_in_a_row + 1 : 0;
    if (kept_blocks > BLOCKS_AT_MOST)
        collector_switch_off(collector, "a call kept more than 1,000,000 blocks of memory");
    else if (collector->kept_in_a_row >= MEMORY_LOOKS)
        collector_switch_off(collector, "each call keeps more memory");
}

/* Is neither the program's time nor that of the call around. */
static void charge_collectors(struct thread *thread, uint32_t index, struct reading begin, struct reading end,
                              uint64_t times)
{
    struct thread_record *record = thread->record;
    uint64_t wall_ns = times * (end.wall_ns - begin.wall_ns), cpu_ns = times * (end.cpu_ns - begin.cpu_ns);
    cpu_ns = cpu_ns < wall_ns ? cpu_ns : wall_ns;
    record->fields.own_wall_ns += wall_ns;
    record->fields.own_cpu_ns += cpu_ns;
    if (index && times == 1) {
        record->open[index - 1].inner_wall_ns += wall_ns;
        record->open[index - 1].inner_cpu_ns += cpu_ns;
    }
}

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
static inline uint32_t open_collector(const struct span *span, const struct collector *collector)
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

static inline void close_collector(struct thread_record *record, uint32_t index)
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

/* What a collector may change of what is recorded, but for the transaction's name. */
struct claims {
    const char *module;
    uint64_t base, size;
    const char *section;
    uint64_t statement;
};

/* What a collector is given, behind it what keeps the texts in it alive, what it finds claimed, and the texts that others
   made in their `scratch` before it. */
struct told {
    struct interpose_area area;
    const struct identified *place;
    uint64_t address;
    struct claims before;
    char made[COLLECTORS_AT_MOST][INTERPOSE_SCRATCH_BYTES];
};

static inline struct claims claims_of(const struct interpose_area *area)
{
    return (struct claims){area->module, area->base, area->size, area->section, area->statement};
}

static inline void claims_restore(struct interpose_area *area, const struct claims *claims)
{
    area->module = claims->module;
    area->section = claims->section;
    area->base = claims->base;
    area->size = claims->size;
    area->statement = claims->statement;
}

/* Whether it changed what is recorded. What cannot be is not. */
static __attribute__((always_inline)) inline bool run_collector(struct collector *collector, struct told *told,
                                                                const struct span *span, PyObject **made)
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
static inline void tell(struct told *told, const struct span *span, bool is_here)
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

static inline void fill_area(struct told *told, const struct identified *place, const struct span *span,
                             const void *native, bool is_here)
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

/* For the next collector: what the one before it wrote into the scratch area and what is known already is as it was. */
static __attribute__((noinline)) void tell_next(struct told *told, const struct collector *before,
                                                const struct span *span, bool is_here)
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

static inline struct claim claim_of(const struct told *told, uint32_t collector)
{
    const struct interpose_area *area = &told->area;
    return (struct claim){.module = area->module,
                          .section = area->section ? area->section : told->place->area.function,
                          .line = area->statement ? area->statement : told->place->area.line,
                          .collector = collector,
                          .is_forced = is_forced(area)};
}

/* Keep what collectors that are asked once for a place have said of it. */
static void keep_claim(uint32_t stack, const struct told *told, uint32_t collector)
{
    const struct interpose_area *area = &told->area;
    struct identified *place = identified_find(stack);
    struct claim claim = claim_of(told, collector);
    if (!place)
        return;
    PyObject *module = PyUnicode_DecodeUTF8(area->module, (Py_ssize_t)strlen(area->module), "replace");
    PyObject *section = area->section ? PyUnicode_DecodeUTF8(area->section, (Py_ssize_t)strlen(area->section), "replace")
                                      : NULL;
    place->recorded = claim_stack(place->stack, claim);
    place->area.section = identified_keep(place, 4, section);
    place->area.module = identified_keep(place, 3, module);
    place->area.base = area->base;
    place->area.size = area->size;
    place->area.statement = area->statement;
    Py_XDECREF(module);
    Py_XDECREF(section);
    PyErr_Clear();
}

/* What those that are asked once for a place say of it. */
static void identify_once(const struct identified *place, const struct span *span, const void *native)
{
    PyObject *made[COLLECTORS_AT_MOST] = {NULL};
    struct told told;
    uint32_t left = collectors.on & collectors.per[INTERPOSE_PER_SITE], by = 0;
    const struct interpose_area *area = &told.area;
    fill_area(&told, place, span, native, true);
    while (left) {
        struct collector *collector = &collectors.all[__builtin_ctz(left)];
        if (run_collector(collector, &told, span, &made[collector->place]))
            by = collector->name;
        left &= (left - 1) & collectors.on; /* none is, where this one ended the recording */
        if (left)
            tell_next(&told, collector, span, true);
    }
    const struct pseudo_section *section = area->module ? section_of_module(area->module) : NULL;
    if (section && !by)
        by = collectors.all[section->collector].name;
    if (area->module && *area->module && by && collectors.on)
        keep_claim(span->stack, &told, by);
    for (unsigned index = 0; index < COLLECTORS_AT_MOST; index++)
        if (made[index])
            collectors.release(made[index]);
}

/* A place seen for the first time. What is raised stays raised. */
static __attribute__((noinline)) void first_identified(const struct span *span, const void *native)
{
    PyObject *type, *value, *traceback;
    struct reading begin = own_begin(span->thread);
    PyErr_Fetch(&type, &value, &traceback);
    struct identified place = *identify(span->stack);
    for (unsigned index = 0; index < IDENTIFIED_TEXTS; index++)
        Py_XINCREF(place.texts[index]);
    identify_once(&place, span, native);
    for (unsigned index = 0; index < IDENTIFIED_TEXTS; index++)
        Py_XDECREF(place.texts[index]);
    PyErr_Restore(type, value, traceback);
    if (span->thread->own_depth) /* a forked child's is 0 */
        own_end(span->thread, begin);
}

/* The place of a call. Of one that ended elsewhere than it was made it may not be known any more. */
static inline const struct identified *identified_place(const struct span *span, const void *native, bool is_here)
{
    static const struct identified unknown;
    const struct identified *found = identified_find(span->stack);
    if (UNLIKELY(!found) && is_here) {
        first_identified(span, native);
        found = identified_find(span->stack);
    }
    return found ? found : &unknown;
}

/* --- the name of the transaction */

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

/* What is named inside of a transaction is named until that ends; what is named outside stays until it changes. */
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
static void record_name(const struct span *span, const struct named *named, bool is_later)
{
    struct thread *thread = span->thread;
    struct thread_record *record = thread->record;
    bool is_inside = boundary_of(span->intrinsic) & BOUNDARY_IS;
    uint32_t parent = is_inside ? span->call : span->index ? record->open[span->index - 1].call : 0;
    struct event *event = event_place(thread);
    record->fields.made++;
    if (!event) {
        record->fields.dropped++;
        return;
    }
    if (++thread->calls == 0)
        thread->calls = 1;
    uint64_t start_ns = span->begin.wall_ns + (is_later ? span->wall_ns : 0);
    *event = (struct event){.start_ns = start_ns,
                            .start_cpu_ns = span->begin.cpu_ns + (is_later ? span->cpu_ns : 0),
                            .thread = thread->number,
                            .call = thread->calls,
                            .parent = parent,
                            .intrinsic = collectors.named,
                            .stack = span->stack,
                            .detail = intern_name(named->text),
                            .task = span->task};
    event_written(thread, start_ns, start_ns);
}

/* Is it what a collector says now? As far as there is room for it; none is no name. */
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

/* Tasks take turns on a thread: only inside of a transaction of their own has a name a place. True where the name is to
   be recorded behind the call: a read of the terminal begins a transaction, and it is that which is named. */
static __attribute__((noinline)) bool change_name(const struct span *span, struct named *named, const char *name)
{
    if (span->task && !named->within)
        return false;
    snprintf(named->text, sizeof named->text, "%s", name ? name : "");
    named->bytes = (uint32_t)strlen(named->text);
    if (boundary_of(span->intrinsic) & BOUNDARY_READS)
        return true;
    record_name(span, named, false);
    return false;
}

/* --- all of them */

/* What is left to do for a call that collectors were asked of: record it; record the name of the transaction behind it as
   well; nothing, for a collector forked or ended the recording. */
enum collected { COLLECTED, COLLECTED_LATER_NAMED, COLLECTED_GONE };

/* `made` is for what is made of those in Python; NULL where there are none. `times`: how many calls its time stands for;
   0 where it is not read. `is_alone`: but one is wanted, for which this is compiled once more without a loop. */
static __attribute__((always_inline)) inline enum collected run_collectors(
    struct span *span, const struct identified *place, uint32_t wanted, const void *native, bool is_here, PyObject **made,
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

static __attribute__((noinline)) enum collected run_timed(struct span *span, uint32_t wanted, const void *native, bool is_here)
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

/* A call has ended, and is about to be recorded: have it named. */
static __attribute__((noinline)) enum collected collect(struct span *span, const void *native, bool is_here)
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

static inline bool is_collecting(void)
{
    return UNLIKELY(collectors.on);
}

/* The place that a call is made from whose end will be seen from elsewhere. */
static __attribute__((noinline)) void collect_place(const struct span *span)
{
    struct thread *thread = span->thread;
    thread->quiet++;
    if (!identified_find(span->stack))
        first_identified(span, NULL);
    if (thread->quiet)
        thread->quiet--;
}

/* Record the call, by whatever name it got. `is_here`: the frame that runs is the one that called. */
static inline void record_collected(struct span *span, uint64_t bytes, uint32_t error, const void *native, bool is_here)
{
    enum collected collected = is_collecting() ? collect(span, native, is_here) : COLLECTED;
    if (UNLIKELY(collected == COLLECTED_GONE))
        return;
    span_record(span, bytes, error);
    if (UNLIKELY(collected == COLLECTED_LATER_NAMED))
        record_name(span, named_here(span->thread, span), true);
}
