#include "collectors/collector_calls.h"

#include <string.h>

#include "collectors/readable_texts.h"
#include "core/intern.h"
#include "cpython/frame.h"
#include "cpython/raised.h"

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
    area->identifier[INTERPOSE_IDENTIFIER_BYTES - 1] = 0;
    uint64_t hash = hash_bytes(area->identifier, strlen(area->identifier));
    if (hash == collector->identifier)
        return;
    struct raised raised = raised_keep();
    collectors.identify(collector, area->identifier);
    raised_restore(raised);
    collector->identifier = hash;
}

/* As a call in progress, so that one that hangs can be seen. The entry is gone if the process was forked
   meanwhile. */
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

/* Are the texts that a collector in C gave there? */
static bool can_be_read(const struct interpose_area *area, const struct claims *before, const char *transaction)
{
    return (area->module == before->module || !area->module || is_readable(area->module)) &&
           (area->section == before->section || !area->section || is_readable(area->section)) &&
           (area->transaction == transaction || !area->transaction || is_readable(area->transaction));
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
    if (collector->collect && UNLIKELY(!can_be_read(area, before, transaction))) {
        collector_switch_off(collector, "it gave a text that cannot be read");
        done = false;
    }
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

/* --- its input */

/* The facts, whatever a collector wrote there. `is_here`: the calling code runs, and therefore is alive. */
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
