/* The events of line trace, as CPython tells them: a function begins or goes on, comes to a line, ends or is suspended. What each
   does is the same in all versions; who calls is not: sys.monitoring from 3.12 on, a trace function before. */
#pragma once

#include "lines/traced_code.h"

/* Whether the interpreter takes time at each instruction for asking if a line begins, or before the event alone. */
enum { ASKS_AT_INSTRUCTIONS = PY_VERSION_HEX < 0x030c0000 };

enum { FRAMES_OF_OURS = 3 }; /* between the line that switches and the switch, at most */

static struct line_thread *current_lines(void)
{
    struct thread *thread = current_thread;
    return LIKELY(thread != NULL) ? thread->lines : NULL;
}

static inline struct line_thread *lines_of(PyThreadState *state)
{
    struct line_thread *thread = current_lines();
    return LIKELY(thread && thread->stretch == lines.stretch) ? thread : lines_thread(state);
}

/* The task that runs is told by its outermost coroutine, or by the greenlet; what that calls is its as well. */
static uint32_t owner_of(struct line_thread *thread, const struct traced_code *known, frame *here)
{
    bool is_switched = thread->thread->greenlet != thread->top->greenlet;
    if (UNLIKELY(known->coroutine) && (is_switched || !thread->top->coroutine) && here->owner == FRAME_OWNED_BY_GENERATOR)
        return lines_owner(thread, task_here(frame_generator(here)));
    return LIKELY(!is_switched) ? thread->top->owner : lines_owner(thread, thread->thread->greenlet);
}

static inline uint32_t unit_of(frame *here, const struct plan *plan)
{
    uint32_t unit = (uint32_t)frame_instruction(here);
    return LIKELY(unit < plan->units) ? unit : 0;
}

/* A function begins, or goes on in the line where it was; one that is found in progress is as if it began just now. */
static bool enter_function(struct line_thread *thread, struct traced_code *known, frame *here, bool begins)
{
    if (UNLIKELY(thread->top->frame == here))
        lines_pop(thread); /* its end was not seen */
    uint32_t owner = owner_of(thread, known, here);
    struct line_table *table = known->tables;
    if (UNLIKELY(!table || !line_table_is_of(table, owner)))
        table = other_table(known, owner, here);
    if (UNLIKELY(!table))
        return false;
    uint32_t spot = begins ? (uint32_t)ENTRY_SPOT : (uint32_t)known->plan->spot_of[unit_of(here, known->plan)] & SPOT_NUMBER;
    lines_push(thread, here, table, known->plan, _PyCode_CODE(known->is.code), &table->lines[spot], owner);
    thread->top->coroutine = known->coroutine;
    thread->top->greenlet = thread->thread->greenlet;
    return true;
}

static inline void function_begins(struct line_thread *thread, struct traced_code *known, frame *here, bool begins)
{
    if (UNLIKELY(thread->beyond || !lines_have_room(thread)))
        lines_count_beyond(thread);
    else if (enter_function(thread, known, here, begins) && begins && !thread->paused)
        thread->top->table->function->calls++;
}

static inline void function_ends(struct line_thread *thread, frame *here)
{
    lines_begin(thread, ticks_now() - (uint64_t)lines.costs.end);
    if (LIKELY(thread->top->frame == here)) {
        thread->beyond = 0;
        lines_pop(thread);
    } else if (thread->beyond) {
        thread->beyond--;
    }
    lines_end(thread, (uint64_t)lines.costs.after);
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

/* A line of a frame that is not the innermost known: tracing was switched on inside of it, or an end was not seen. */
static __attribute__((noinline)) struct line_thread *find_frame(PyThreadState *state, frame *here)
{
    uint64_t now = ticks_now();
    struct line_thread *thread = lines_of(state);
    if (!thread || thread->top->frame == here)
        return thread;
    struct traced_code *known = thread->beyond ? NULL : traced_code_of(frame_code(here), here);
    lines_begin(thread, now);
    bool is_ours = known && known->is.chosen;
    if (is_ours)
        leave_others(thread, here);
    bool found = is_ours && (thread->top->frame == here || (lines_have_room(thread) && enter_function(thread, known, here, true)));
    lines_end(thread, 0);
    return found ? thread : NULL;
}

/* Is the line come to by a loop's way back? Else it is come to from before. */
static bool is_way_back(const struct line_thread *thread, const struct plan *plan, uint32_t spot)
{
    const struct spot *here = &plan->spot[spot], *before = &plan->spot[thread->line - thread->top->table->lines];
    return here->flags & SPOT_BACK || before->instruction > here->instruction || before->line == here->line;
}

static inline void count_line(struct line_thread *thread, const struct plan *plan, uint64_t flagged)
{
    uint32_t spot = (uint32_t)flagged & SPOT_NUMBER;
    struct line *line = &thread->top->table->lines[spot];
    line->executed++;
    /* CPython 3.12.1 tells a line again where what was called from its middle has returned. */
    if (UNLIKELY(thread->line == line || ((uint32_t)flagged >> SPOT_FLAGS && is_way_back(thread, plan, spot))))
        line->back++;
    lines_go_to(thread, line);
}

/* Nothing is counted in a pause. */
static __attribute__((noinline)) void come_to_apart(struct line_thread *thread, const struct plan *plan, uint64_t flagged,
                                                    frame *here)
{
    if (thread->paused) {
        lines_go_to(thread, &thread->top->table->lines[flagged & SPOT_NUMBER]);
        return;
    }
    count_line(thread, plan, flagged);
    if (recorder.tell_line)
        recorder.tell_line(here);
}

static inline void come_to(struct line_thread *thread, const struct plan *plan, uint64_t flagged, frame *here)
{
    if (UNLIKELY(thread->apart))
        come_to_apart(thread, plan, flagged, here);
    else
        count_line(thread, plan, flagged);
}

/* Of a function that has just begun nothing has run before its first line: what passed was the interpreter's, for the event. */
static inline bool has_just_begun(const struct line_thread *thread)
{
    return thread->line == thread->top->table->lines + ENTRY_SPOT && thread->charged == thread->top->start;
}

/* `here` is the innermost function. */
static inline void line_begins(struct line_thread *thread, frame *here)
{
    const struct plan *plan = thread->top->plan;
    size_t unit = (size_t)(frame_place(here) - (const _Py_CODEUNIT *)thread->top->code);
    thread->beyond = 0;
    uint64_t spot = plan->spot_of[LIKELY(unit < plan->units) ? unit : 0], cost = spot >> SPOT_COST;
    if (!has_just_begun(thread))
        lines_begin(thread, ticks_now() - plan->line_ticks - (ASKS_AT_INSTRUCTIONS ? 0 : cost));
    come_to(thread, plan, spot, here);
    lines_end(thread, ASKS_AT_INSTRUCTIONS ? cost : 0);
}

/* The line from which line trace is switched off is not to be counted: its function is one of the next outward. */
static void uncount_line(PyThreadState *state)
{
    struct line_thread *thread = current_lines();
    frame *here = frame_innermost(state);
    if (!lines.on || !thread || thread->stretch != lines.stretch || !thread->line->executed)
        return;
    for (int steps = 0; here && thread->top->frame != here && steps < FRAMES_OF_OURS; steps++)
        here = frame_outer(here);
    if (!here || thread->top->frame != here)
        return;
    thread->line->executed--;
    thread->line->back -= thread->line->back > thread->line->executed;
}

#if PY_VERSION_HEX >= 0x030c0000
#include "lines/line_monitor.h"
#else
#include "lines/line_trace.h"
#endif
