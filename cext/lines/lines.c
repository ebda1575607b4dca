#define _GNU_SOURCE
#include "lines/lines.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include "core/file.h"

/* So much the lines of a process may take; functions that come later are left out, and counted. */
#define LINES_MOST_BYTES (512ull << 20)
/* Of stretches of trace with targets of their own; what comes later is counted with the last. */
enum { TRACES = 1000, MEASURED_NS = 200 * 1000 };

struct lines lines;
bool ticks_are_counted;

static struct {
    struct series traces, functions, lines, loops;
    uint32_t *ours; /* in memory that a forked child finds zeroed: the files are this process's */
    bool rehearsing;
    uint64_t heeded; /* before the rehearsal */
    struct line_thread *threads;
    struct {
        uint32_t thread, task;
    } owners[LINE_OWNERS];
    uint32_t owner_count; /* the first is whoever has no place of its own */
    struct line_trace *trace[TRACES + 1]; /* by number */
    uint32_t trace_count, untold; /* the one without a target */
    uint32_t recording;           /* whose files they are */
    uint64_t on_ns;
    struct rusage self, children;
} own = {.owner_count = 1};

/* --- ticks */

static bool counter_is_even(void)
{
    bool even = false;
#if defined(__x86_64__)
    char source[32];
    unsigned a, b, c, d;
    bool trusted = file_read("/sys/devices/system/clocksource/clocksource0/current_clocksource", source, sizeof source) &&
                   (strncmp(source, "tsc", 3) == 0 || strncmp(source, "kvm-clock", 9) == 0);
    even = trusted && __get_cpuid(0x80000007, &a, &b, &c, &d) && d & 1u << 8;
#endif
    return even;
}

void ticks_choose(void)
{
    ticks_are_counted = counter_is_even();
}

double ticks_measure(void)
{
    uint64_t begin_ns = clock_ns(CLOCK_MONOTONIC), begin = ticks_now(), now_ns;
    do
        now_ns = clock_ns(CLOCK_MONOTONIC);
    while (now_ns - begin_ns < MEASURED_NS);
    return (double)(ticks_now() - begin) / (double)(now_ns - begin_ns);
}

/* --- the files */

static int create_files(void)
{
    int failed = recorder_series(&own.traces, DATA_TRACES);
    failed = failed ? failed : recorder_series(&own.functions, DATA_FUNCTIONS);
    failed = failed ? failed : recorder_series(&own.lines, DATA_LINES);
    return failed ? failed : recorder_series(&own.loops, DATA_LOOPS);
}

static int begin_files(void)
{
    int failed = create_files();
    if (failed)
        return failed;
    own.threads = NULL; /* they are a parent's, or an earlier recording's */
    own.owner_count = 1;
    own.trace_count = own.untold = 0;
    lines.serial++;
    *own.ours = 1;
    return 0;
}

/* A page that tells a forked child that it is one. */
static int prepare_once(void)
{
    if (own.ours)
        return 0;
    void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED || madvise(page, 4096, MADV_WIPEONFORK))
        return errno;
    own.ours = page;
    return 0;
}

/* --- stretches of trace */

static uint64_t timeval_ns(struct timeval time)
{
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_usec * 1000u;
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
    record->event_ticks = (uint64_t)lines.costs.line;
    record->call_ticks = (uint64_t)lines.costs.call;
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

static void note_ticks(struct line_trace *record)
{
    record->last_ticks = ticks_now();
    record->last_ns = clock_ns(CLOCK_MONOTONIC);
}

static int begin_stretch(uint32_t target)
{
    lines.trace = find_trace(target);
    if (!lines.trace)
        return errno ? errno : ENOSPC;
    struct line_trace *record = own.trace[lines.trace];
    record->stretches++;
    record->end_ns = 0;
    note_ticks(record);
    own.on_ns = clock_ns(CLOCK_MONOTONIC);
    getrusage(RUSAGE_SELF, &own.self);
    getrusage(RUSAGE_CHILDREN, &own.children);
    lines.stretch++;
    return 0;
}

static void end_stretch(struct line_trace *record)
{
    struct rusage self, children;
    uint64_t now_ns = clock_ns(CLOCK_MONOTONIC);
    getrusage(RUSAGE_SELF, &self);
    getrusage(RUSAGE_CHILDREN, &children);
    record->on_ns += now_ns - own.on_ns;
    record->user_ns += timeval_ns(self.ru_utime) - timeval_ns(own.self.ru_utime);
    record->system_ns += timeval_ns(self.ru_stime) - timeval_ns(own.self.ru_stime);
    record->children_user_ns += timeval_ns(children.ru_utime) - timeval_ns(own.children.ru_utime);
    record->children_system_ns += timeval_ns(children.ru_stime) - timeval_ns(own.children.ru_stime);
    note_ticks(record);
    __atomic_store_n(&record->end_ns, now_ns, __ATOMIC_RELEASE);
}

/* --- tables */

static struct line_table *new_table(uint32_t owner, uint32_t spots)
{
    struct line_table *table = calloc(1, sizeof *table + spots * sizeof *table->waiting);
    if (table) {
        table->owner = owner;
        table->serial = lines.serial;
        table->trace = lines.trace;
    }
    return table;
}

static bool fill_rehearsed(struct line_table *table, const struct line_shape *shape)
{
    table->rehearsed = true;
    table->function = calloc(1, sizeof *table->function);
    table->lines = calloc(shape->spots, sizeof *table->lines);
    table->loops = calloc(shape->loops + 1, sizeof *table->loops);
    return table->function && table->lines && table->loops;
}

static bool fill(struct line_table *table, const struct line_shape *shape)
{
    void *function = NULL, *spots = NULL, *loops = NULL;
    if (own.rehearsing)
        return fill_rehearsed(table, shape);
    if (own.lines.file.bytes + shape->spots * sizeof(struct line) > LINES_MOST_BYTES ||
        shape->spots > LINES_BYTES / sizeof(struct line) - 1)
        return false;
    uint32_t first = series_records(&own.lines, shape->spots, &spots);
    uint32_t number = first ? series_records(&own.functions, 1, &function) : 0;
    bool looped = !shape->loops || (shape->loops < WINDOW_BYTES / sizeof(struct loop) / 2 &&
                                    series_records(&own.loops, shape->loops, &loops));
    if (!number || !looped)
        return false;
    table->lines = spots;
    table->loops = loops;
    table->function = function;
    *table->function = (struct function){
        .trace = lines.trace,
        .thread = own.owners[table->owner].thread,
        .task = own.owners[table->owner].task,
        .file = shape->file,
        .function = shape->function,
        .module = shape->module,
        .first_line = shape->first_line,
        .own = shape->own,
        .first_spot = first,
        .spots = shape->spots,
    };
    table->number = number;
    table->first = first;
    __atomic_store_n(&table->function->kind, shape->kind, __ATOMIC_RELEASE);
    return true;
}

struct line_table *lines_table(uint32_t owner, const struct line_shape *shape)
{
    int saved = errno;
    struct line_table *table = new_table(owner, shape->spots);
    if (table && !fill(table, shape)) {
        lines_table_free(table);
        table = NULL;
    }
    if (!table && own.trace[lines.trace])
        own.trace[lines.trace]->left_out++;
    errno = saved;
    return table;
}

void lines_table_free(struct line_table *table)
{
    if (table->rehearsed) {
        free(table->function);
        free(table->lines);
        free(table->loops);
    }
    free(table);
}

/* A pause is looked away from meanwhile: what recording takes is not measured in one. */
void lines_rehearse(bool on)
{
    own.rehearsing = on;
    if (on) {
        own.heeded = recorder.heeded;
        recorder.heeded = said_from_outside();
    } else {
        recorder.heeded = own.heeded;
    }
}

/* --- threads and tasks */

static uint32_t find_owner(uint32_t thread, uint32_t task)
{
    for (uint32_t owner = 1; owner < own.owner_count; owner++)
        if (own.owners[owner].thread == thread && own.owners[owner].task == task)
            return owner;
    if (own.owner_count == LINE_OWNERS)
        return 0;
    own.owners[own.owner_count].thread = thread;
    own.owners[own.owner_count].task = task;
    return own.owner_count++;
}

uint32_t lines_owner(struct line_thread *thread, uint32_t task)
{
    uint32_t owner = task ? find_owner(thread->thread->number, task) : 0;
    return owner ? owner : thread->frames->owner;
}

static bool is_over(const struct line_thread *thread)
{
    return thread->thread->lines != thread || __atomic_load_n(&thread->thread->ended, __ATOMIC_ACQUIRE);
}

static struct line_thread *new_thread(void)
{
    size_t bytes = sizeof(struct line_thread) + (lines.depth + 1) * sizeof(struct line_frame);
    struct line_thread *thread = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (thread == MAP_FAILED)
        return NULL;
    thread->frames = (struct line_frame *)(thread + 1);
    thread->depth = lines.depth;
    thread->next = own.threads;
    own.threads = thread;
    return thread;
}

static struct line_thread *take_thread(void)
{
    for (struct line_thread *thread = own.threads; thread; thread = thread->next)
        if (is_over(thread)) {
            thread->stretch = 0;
            thread->outside = NULL; /* lies in the file; its memory is small change */
            return thread;
        }
    return new_thread();
}

static bool find_outside(struct line_thread *thread, uint32_t owner)
{
    static const struct line_shape shape = {.kind = FUNCTION_OUTSIDE, .spots = 1};
    if (thread->outside && line_table_is_of(thread->outside, owner) && thread->outside->rehearsed == own.rehearsing)
        return true;
    thread->charged = thread->off = thread->charged_off = thread->own_off = 0; /* what was until now is in another record */
    thread->event_ticks = 0;
    thread->outside = lines_table(owner, &shape);
    if (!thread->outside)
        return false;
    if (!thread->outside->rehearsed)
        thread->outside->lines->function = thread->outside->number;
    return true;
}

/* Calibration counts ticks alone: it asks no clock. */
static void ask_no_clock(struct line_thread *thread)
{
    static volatile uint64_t no_word;
    thread->sync_ticks = ticks_now();
    thread->generation = thread->clock->generation;
    thread->word = &no_word;
    thread->mark = 0;
    thread->sure_until = UINT64_MAX;
}

static void ask_clock(struct line_thread *thread)
{
    if (own.rehearsing) {
        ask_no_clock(thread);
        return;
    }
    struct reading now = clock_read(thread->clock);
    thread->sync_ticks = ticks_now();
    thread->sync_charged = thread->charged;
    thread->generation = thread->clock->generation;
    thread->word = thread->clock->word;
    thread->mark = thread->clock->mark;
    thread->sure_until = lines.system ? 0 : thread->sync_ticks + lines.sync_ticks;
    thread->sync_wall_ns = now.wall_ns;
    thread->sync_cpu_ns = now.cpu_ns;
}

static uint64_t kernel_ns(void)
{
    struct rusage usage;
    getrusage(RUSAGE_THREAD, &usage);
    return timeval_ns(usage.ru_stime);
}

static void look_if_paused(struct line_thread *thread)
{
    thread->paused = recorder_paused();
    thread->apart = thread->paused || recorder.tell_line;
}

static bool enter(struct line_thread *thread, void *state)
{
    uint32_t owner = find_owner(thread->thread->number, 0);
    thread->clock = &thread->thread->clock;
    thread->state = state;
    if (!find_outside(thread, owner))
        return false;
    *thread->frames = (struct line_frame){.table = thread->outside, .owner = owner};
    thread->top = thread->frames;
    lines_go_to(thread, thread->outside->lines);
    thread->beyond = 0;
    look_if_paused(thread);
    ask_clock(thread);
    thread->system_ns = lines.system ? kernel_ns() : 0;
    thread->counted = thread->sync_ticks;
    thread->since = thread->sync_ticks;
    thread->cost = 0;
    thread->stretch = lines.stretch;
    return true;
}

/* In a forked child they are begun with its first event; it goes on with the stretch that its parent was in. */
static bool have_files(void)
{
    if (own.rehearsing || *own.ours)
        return true;
    uint32_t target = lines.trace ? own.trace[lines.trace]->target : 0;
    if (!recorder_directory() || begin_files() || begin_stretch(target)) {
        lines.on = 0;
        return false;
    }
    return true;
}

struct line_thread *lines_thread(void *state)
{
    int saved = errno;
    struct thread *recorded = lines.on ? recording() : NULL;
    struct line_thread *thread = recorded && have_files() ? recorded->lines : NULL;
    if (recorded && lines.on && !thread && (thread = take_thread())) {
        thread->thread = recorded;
        recorded->lines = thread;
    }
    if (thread && thread->stretch != lines.stretch && !enter(thread, state))
        thread = NULL;
    errno = saved;
    return thread;
}

void lines_count_beyond(struct line_thread *thread)
{
    thread->beyond++;
    if (own.trace[lines.trace])
        own.trace[lines.trace]->beyond++;
}

/* --- time */

static uint64_t less_of(uint64_t one, uint64_t other)
{
    return one < other ? one : other;
}

/* The clock was asked: of the time since it was asked last so many ticks were not on a processor. What is more than has passed
   since the last event was while recording took its time; what is more than that (a hypervisor took it, and nothing told so) is
   nobody's. */
static void charge_off(struct line_thread *thread, uint64_t off, int64_t passed, uint64_t own_since)
{
    uint64_t of_line = less_of(off, passed > 0 ? (uint64_t)passed : 0), own = less_of(off - of_line, own_since);
    thread->line->off_ticks += of_line;
    thread->charged_off += of_line;
    thread->own_off += own;
    thread->outside->lines->off_ticks += off - of_line - own;
    thread->off += off;
}

static void charge_system(struct line_thread *thread)
{
    uint64_t now_ns = kernel_ns();
    thread->line->system_ns += now_ns - thread->system_ns;
    thread->system_ns = now_ns;
}

/* What is outside of all functions has what is known of the thread as a whole. */
static void note_whole(struct line_thread *thread, uint64_t now)
{
    struct function *whole = thread->outside->function;
    whole->ticks += now - thread->counted;
    whole->off_ticks = thread->off;
    whole->own_ticks = whole->ticks - thread->charged - thread->own_off;
    whole->event_ticks = thread->event_ticks;
    thread->counted = now;
}

/* What passed since the last event is nobody's. */
static void pass(struct line_thread *thread)
{
    ask_clock(thread);
    thread->counted = thread->sync_ticks;
}

static void charge_until(struct line_thread *thread, uint64_t now, int64_t cost)
{
    uint64_t wall_ns = thread->sync_wall_ns, cpu_ns = thread->sync_cpu_ns, begin = thread->sync_ticks;
    uint64_t charged = thread->sync_charged;
    int64_t passed = lines_add(thread, now, cost);
    ask_clock(thread);
    wall_ns = thread->sync_wall_ns - wall_ns;
    cpu_ns = thread->sync_cpu_ns - cpu_ns;
    if (wall_ns > cpu_ns) {
        uint64_t own_since = thread->sync_ticks - begin - (thread->charged - charged);
        charge_off(thread, (uint64_t)((double)(wall_ns - cpu_ns) * lines.ticks_in_ns), passed, own_since);
    }
    if (lines.system)
        charge_system(thread);
    note_whole(thread, thread->sync_ticks);
    if (own.trace[lines.trace])
        note_ticks(own.trace[lines.trace]);
}

void lines_settle(struct line_thread *thread, uint64_t now, int64_t cost)
{
    int saved = errno;
    bool was_paused = thread->paused;
    look_if_paused(thread);
    if (was_paused)
        pass(thread);
    else
        charge_until(thread, now, cost);
    errno = saved;
}

/* --- switches */

static void leave_all(struct line_thread *thread)
{
    while (thread->top > thread->frames)
        lines_pop(thread);
    note_whole(thread, thread->since);
    thread->stretch = 0;
}

/* As the process ends, or its recording does: what the calling thread is in has its times. */
static void recording_ends(void)
{
    struct line_thread *thread = current_thread ? current_thread->lines : NULL;
    if (!lines.on || !own.ours || !*own.ours)
        return;
    if (thread && thread->stretch == lines.stretch) {
        lines_begin(thread, ticks_now(), 0);
        lines_end(thread, 0);
    }
    lines_off(0);
}

void lines_prepare(uint32_t depth, bool system)
{
    ticks_choose();
    lines.ticks_in_ns = ticks_are_counted ? ticks_measure() : 1;
    lines.sync_ticks = (uint64_t)(SYNC_NS * lines.ticks_in_ns);
    lines.depth = depth < LINES_DEEPEST ? depth : LINES_DEEPEST;
    lines.system = system;
    recorder.before_end[END_LINES] = recording_ends;
}

int lines_on(uint32_t target)
{
    if (lines.on)
        return 0;
    if (own.rehearsing) {
        lines.trace = 0;
        lines.stretch++;
        lines.on = 1;
        return 0;
    }
    if (!recorder_directory())
        return ESRCH;
    int failed = prepare_once();
    if (!failed && (!*own.ours || own.recording != recorder.serial))
        failed = begin_files();
    failed = failed ? failed : begin_stretch(target);
    if (!failed) {
        own.recording = recorder.serial;
        lines.on = 1;
    }
    return failed;
}

void lines_off(uint32_t target)
{
    if (!lines.on)
        return;
    lines.on = 0;
    if (!own.rehearsing && !*own.ours)
        return; /* in a forked child that traced nothing: all of it is its parent's */
    for (struct line_thread *thread = own.threads; thread; thread = thread->next)
        if (thread->stretch == lines.stretch)
            leave_all(thread);
    if (own.rehearsing)
        return;
    if (target)
        own.trace[lines.trace]->target = target;
    end_stretch(own.trace[lines.trace]);
}
