#include "lines/line_parts.h"

#include <errno.h>

enum { LOST_NS = 50 * 1000 }; /* a thread without its processor for so long has lost it to another one */

struct lines lines;

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

/* Reading the CPU time makes the kernel notice that the time slice is used up. So a busy machine takes the processor away mostly
   while the clock is read, for `asked` ticks. Without recording, the line would have lost it a little later. */
static uint64_t charge_lost(struct line_thread *thread, uint64_t off, uint64_t asked)
{
    if ((double)off < LOST_NS * lines.ticks_in_ns)
        return 0;
    uint64_t lost = less_of(off, asked);
    thread->line->ticks += (int64_t)lost;
    thread->line->off_ticks += lost;
    thread->charged += lost;
    thread->charged_off += lost;
    thread->off += lost;
    thread->sync_charged += lost;
    return lost;
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
        uint64_t off = (uint64_t)((double)(wall_ns - cpu_ns) * lines.ticks_in_ns);
        off -= charge_lost(thread, off, thread->sync_ticks - now);
        charge_off(thread, off, passed, thread->sync_ticks - begin - (thread->charged - charged));
    }
    if (lines.system)
        charge_system(thread);
    note_whole(thread, thread->sync_ticks);
    if (stretch_record()) {
        stretch_note_ticks(stretch_record());
        speed_look(stretch_record(), thread->sync_wall_ns);
    }
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

/* Take a part of a line's time out of all sums, as if the thread had not been traced then. */
static void take_back(struct line_thread *thread, struct line *line, struct line_sums part)
{
    line->ticks -= (int64_t)part.ticks;
    line->off_ticks -= (int64_t)part.off;
    line->event_ticks -= part.events;
    thread->charged -= part.ticks;
    thread->charged_off -= part.off;
    thread->off -= part.off;
    thread->event_ticks -= part.events;
    thread->counted += part.ticks + (uint64_t)part.events;
}

void lines_uncount(struct line_thread *thread)
{
    struct line *line = thread->line;
    int64_t visits = (int64_t)line->executed;
    if (!visits || thread->paused)
        return;
    take_back(thread, line, (struct line_sums){(uint64_t)(line->ticks / visits), (uint64_t)(line->off_ticks / visits),
                                               line->event_ticks / visits});
    line->system_ns -= line->system_ns / (uint64_t)visits;
    line->executed--;
    line->back -= line->back > line->executed;
}

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
    if (!lines.on || !stretches_are_ours())
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
    if (lines_are_rehearsed()) {
        lines.trace = 0;
        lines.stretch++;
        lines.on = 1;
        return 0;
    }
    if (!recorder_directory())
        return ESRCH;
    int failed = stretches_prepare();
    if (!failed && !stretches_are_of_recording())
        failed = stretches_begin();
    failed = failed ? failed : stretch_begin(target);
    lines.on = !failed;
    return failed;
}

void lines_off(uint32_t target)
{
    if (!lines.on)
        return;
    lines.on = 0;
    if (!lines_are_rehearsed() && !stretches_are_ours())
        return; /* in a forked child that traced nothing: all of it is its parent's */
    for (struct line_thread *thread = line_threads(); thread; thread = thread->next)
        if (thread->stretch == lines.stretch)
            leave_all(thread);
    if (!lines_are_rehearsed())
        stretch_end(target);
}
