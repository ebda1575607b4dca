#include "lines/line_events.h"

#include "cpython/tasks.h"

enum { FRAMES_OF_OURS = 3 }; /* between the line that switches and the switch, at most */

/* The task that runs is told by its outermost coroutine, or by the greenlet; what that calls is its as well. */
static uint32_t owner_of(struct line_thread *thread, const struct traced_code *known, frame *here)
{
    bool is_switched = thread->thread->greenlet != thread->top->greenlet;
    if (UNLIKELY(known->coroutine) && (is_switched || !thread->top->coroutine) && frame_is_of_generator(here))
        return lines_owner(thread, task_here(frame_generator(here)));
    return LIKELY(!is_switched) ? thread->top->owner : lines_owner(thread, thread->thread->greenlet);
}

static uint32_t unit_of(frame *here, const struct plan *plan)
{
    uint32_t unit = (uint32_t)frame_instruction(here);
    return LIKELY(unit < plan->units) ? unit : 0;
}

static struct line_table *table_for(struct traced_code *known, uint32_t owner, frame *here)
{
    struct line_table *table = known->tables;
    return LIKELY(table && line_table_is_of(table, owner)) ? table : other_table(known, owner, here);
}

static bool enter_function(struct line_thread *thread, struct traced_code *known, frame *here, bool begins)
{
    if (UNLIKELY(thread->top->frame == here))
        lines_pop(thread); /* its end was not seen */
    uint32_t owner = owner_of(thread, known, here);
    struct line_table *table = table_for(known, owner, here);
    if (UNLIKELY(!table))
        return false;
    uint32_t spot = begins ? (uint32_t)ENTRY_SPOT : (uint32_t)known->plan->spot_of[unit_of(here, known->plan)] & SPOT_NUMBER;
    struct line_frame *next = lines_next(thread);
    next->frame = here;
    next->table = table;
    next->plan = known->plan;
    next->code = code_begin(known->is.code);
    next->lines = table->lines;
    next->line = &table->lines[spot];
    next->owner = owner;
    next->coroutine = known->coroutine;
    next->greenlet = thread->thread->greenlet;
    lines_push(thread);
    thread->apart |= begins ? APART_BEGUN : 0;
    return true;
}

void function_begins(struct line_thread *thread, struct traced_code *known, frame *here, bool begins)
{
    if (UNLIKELY(thread->beyond || !lines_have_room(thread)))
        lines_count_beyond(thread);
    else if (enter_function(thread, known, here, begins) && begins && !thread->paused)
        thread->top->table->function->calls++;
}

static struct line_frame *known_frame(struct line_thread *thread, const frame *here)
{
    for (struct line_frame *known = thread->top; known > thread->frames; known--)
        if (known->frame == here)
            return known;
    return NULL;
}

/* Of the functions that the thread is thought to be in, those are left that the frame, or one of its callers, is not in. */
static void leave_others(struct line_thread *thread, frame *here)
{
    struct line_frame *known = known_frame(thread, here);
    for (int steps = 0; !known && here && steps < LINES_DEPTH; steps++) {
        here = frame_outer(here);
        known = known_frame(thread, here);
    }
    while (thread->top > (known ? known : thread->frames))
        lines_pop(thread);
}

struct line_thread *find_frame(PyThreadState *state, frame *here)
{
    uint64_t now = ticks_now();
    struct line_thread *thread = lines_of(state);
    if (!thread || thread->top->frame == here)
        return thread;
    struct traced_code *known = thread->beyond ? NULL : traced_code_of(frame_code(here), here);
    lines_begin(thread, now, 0);
    bool is_ours = known && known->is.chosen;
    if (is_ours)
        leave_others(thread, here);
    bool found = is_ours && (thread->top->frame == here || (lines_have_room(thread) && enter_function(thread, known, here, true)));
    lines_end(thread, 0);
    return found ? thread : NULL;
}

/* Nothing is counted in a pause. */
void come_to_apart(struct line_thread *thread, const struct plan *plan, uint64_t flagged, frame *here)
{
    if (thread->paused) {
        lines_go_to(thread, &thread->top->lines[flagged & SPOT_NUMBER]);
        return;
    }
    count_line(thread, plan, flagged);
    if (recorder.tell_line)
        recorder.tell_line(here);
}

void uncount_line(PyThreadState *state)
{
    struct line_thread *thread = current_lines();
    frame *here = frame_innermost(state);
    if (!lines.on || !thread || thread->stretch != lines.stretch)
        return;
    for (int steps = 0; here && thread->top->frame != here && steps < FRAMES_OF_OURS; steps++)
        here = frame_outer(here);
    if (here && thread->top->frame == here)
        lines_uncount(thread);
}

/* Of a function that has just begun nothing has run before its first line: what passed was the interpreter's, for the event. */
static bool has_just_begun(const struct line_thread *thread)
{
    return thread->line == thread->top->lines + ENTRY_SPOT && thread->charged == thread->top->start.ticks;
}

void line_begins_apart(struct line_thread *thread, uint64_t flagged, frame *here)
{
    thread->beyond = 0;
    thread->apart &= ~(APART_BEGUN | APART_BEYOND);
    if (!has_just_begun(thread))
        lines_begin(thread, ticks_now(), ticks_before(flagged));
    come_to(thread, thread->top->plan, flagged, here);
    lines_end(thread, ticks_after(flagged));
}

static void leave_function(struct line_thread *thread, const frame *here)
{
    if (LIKELY(thread->top->frame == here)) {
        thread->beyond = 0;
        lines_pop(thread);
    } else if (thread->beyond) {
        thread->beyond--;
    }
}

void function_ends_apart(struct line_thread *thread, frame *here)
{
    if (thread->stretch != lines.stretch)
        return; /* it began while line trace was off */
    lines_begin(thread, ticks_now(), lines.costs.end);
    int64_t after = ticks_after_end(thread->top);
    leave_function(thread, here);
    lines_end(thread, after);
}
