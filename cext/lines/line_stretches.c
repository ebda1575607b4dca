#define _GNU_SOURCE
#include "lines/line_parts.h"

#include <errno.h>
#include <sys/mman.h>

/* Of stretches with targets of their own; what comes later is counted with the last. */
enum { TRACES = 1000 };

static struct {
    struct series traces;
    uint32_t *ours; /* in memory that a forked child finds zeroed: the files are this process's */
    struct line_trace *trace[TRACES + 1]; /* by number */
    uint32_t trace_count, untold; /* the one without a target */
    uint32_t recording;           /* whose files they are */
    uint64_t on_ns;
    struct rusage self, children;
} own;

/* A page that tells a forked child that it is one. */
int stretches_prepare(void)
{
    if (own.ours)
        return 0;
    void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED || madvise(page, 4096, MADV_WIPEONFORK))
        return errno;
    own.ours = page;
    return 0;
}

bool stretches_are_ours(void)
{
    return own.ours && *own.ours;
}

bool stretches_are_of_recording(void)
{
    return stretches_are_ours() && own.recording == recorder.serial;
}

int stretches_begin(void)
{
    int failed = recorder_series(&own.traces, DATA_TRACES);
    failed = failed ? failed : tables_begin();
    if (failed)
        return failed;
    line_threads_begin();
    own.trace_count = own.untold = 0;
    own.recording = recorder.serial;
    lines.serial++;
    *own.ours = 1;
    return 0;
}

uint32_t stretch_target(void)
{
    return lines.trace ? own.trace[lines.trace]->target : 0;
}

struct line_trace *stretch_record(void)
{
    return own.trace[lines.trace];
}

static uint32_t add_trace(uint32_t target)
{
    struct line_trace *record = NULL;
    uint32_t number = series_records(&own.traces, 1, (void **)&record);
    if (!number)
        return 0;
    record->target = target;
    record->depth = lines.depth;
    record->system = lines.system;
    record->speed_ticks = (uint32_t)lines.speed_ticks;
    record->start_ticks = record->last_ticks = ticks_now();
    record->last_ns = clock_ns(CLOCK_MONOTONIC);
    __atomic_store_n(&record->start_ns, record->last_ns, __ATOMIC_RELEASE);
    own.trace[number] = record;
    return own.trace_count = number;
}

/* Stretches without a target are counted in one, and so are those for which there is no room. */
static uint32_t find_trace(uint32_t target)
{
    if (!target && own.untold)
        return own.untold;
    uint32_t number = own.trace_count < TRACES ? add_trace(target) : own.trace_count;
    if (!target)
        own.untold = number;
    return number;
}

void stretch_note_ticks(struct line_trace *record)
{
    record->last_ticks = ticks_now();
    record->last_ns = clock_ns(CLOCK_MONOTONIC);
}

int stretch_begin(uint32_t target)
{
    lines.trace = find_trace(target);
    if (!lines.trace)
        return errno ? errno : ENOSPC;
    struct line_trace *record = own.trace[lines.trace];
    record->stretches++;
    record->end_ns = 0;
    stretch_note_ticks(record);
    own.on_ns = clock_ns(CLOCK_MONOTONIC);
    getrusage(RUSAGE_SELF, &own.self);
    getrusage(RUSAGE_CHILDREN, &own.children);
    lines.stretch++;
    return 0;
}

void stretch_end(uint32_t target)
{
    struct rusage self, children;
    struct line_trace *record = own.trace[lines.trace];
    if (target)
        record->target = target;
    uint64_t now_ns = clock_ns(CLOCK_MONOTONIC);
    getrusage(RUSAGE_SELF, &self);
    getrusage(RUSAGE_CHILDREN, &children);
    record->on_ns += now_ns - own.on_ns;
    record->user_ns += timeval_ns(self.ru_utime) - timeval_ns(own.self.ru_utime);
    record->system_ns += timeval_ns(self.ru_stime) - timeval_ns(own.self.ru_stime);
    record->children_user_ns += timeval_ns(children.ru_utime) - timeval_ns(own.children.ru_utime);
    record->children_system_ns += timeval_ns(children.ru_stime) - timeval_ns(own.children.ru_stime);
    stretch_note_ticks(record);
    __atomic_store_n(&record->end_ns, now_ns, __ATOMIC_RELEASE);
}
