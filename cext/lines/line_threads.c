#define _GNU_SOURCE
#include "lines/line_parts.h"

#include <errno.h>
#include <sys/mman.h>

static struct {
    struct line_thread *threads;
    struct {
        uint32_t thread, task;
    } owners[LINE_OWNERS];
    uint32_t owner_count; /* the first is whoever has no place of its own */
} own = {.owner_count = 1};

void line_threads_begin(void)
{
    own.owner_count = 1;
}

struct line_thread *line_threads(void)
{
    return own.threads;
}

void find_owned(uint32_t owner, uint32_t *thread, uint32_t *task)
{
    *thread = own.owners[owner].thread;
    *task = own.owners[owner].task;
}

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
        if (is_over(thread) && thread->depth == lines.depth) {
            thread->stretch = 0;
            thread->outside = NULL; /* lies in the file; its memory is small change */
            return thread;
        }
    return new_thread();
}

static bool find_outside(struct line_thread *thread, uint32_t owner)
{
    static const struct line_shape shape = {.kind = FUNCTION_OUTSIDE, .spots = 1};
    if (thread->outside && line_table_is_of(thread->outside, owner) && thread->outside->rehearsed == lines_are_rehearsed())
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

void ask_clock(struct line_thread *thread)
{
    if (lines_are_rehearsed()) {
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

uint64_t kernel_ns(void)
{
    struct rusage usage;
    getrusage(RUSAGE_THREAD, &usage);
    return timeval_ns(usage.ru_stime);
}

void look_if_paused(struct line_thread *thread)
{
    thread->paused = recorder_paused();
    thread->apart &= APART_BEGUN | APART_BEYOND;
    thread->apart |= thread->paused || recorder.tell_line ? APART_TOLD : 0;
    thread->apart |= ticks_are_counted ? 0 : APART_UNCOUNTED;
}

static bool enter(struct line_thread *thread, void *state)
{
    uint32_t owner = find_owner(thread->thread->number, 0);
    thread->clock = &thread->thread->clock;
    thread->state = state;
    if (!find_outside(thread, owner))
        return false;
    *thread->frames = (struct line_frame){.table = thread->outside, .lines = thread->outside->lines, .owner = owner};
    thread->top = thread->frames;
    lines_go_to(thread, thread->outside->lines);
    thread->beyond = thread->apart = 0;
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
    if (lines_are_rehearsed() || stretches_are_ours())
        return true;
    uint32_t target = stretch_target();
    if (!recorder_directory() || stretches_begin() || stretch_begin(target)) {
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
    thread->apart |= APART_BEYOND;
    if (stretch_record())
        stretch_record()->beyond++;
}
