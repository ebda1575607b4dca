/* The events of line trace, as CPython tells them: a function begins or goes on, comes to a line, ends or is suspended. What each
   does is the same in all versions; who calls is not: sys.monitoring from 3.12 on (line_monitor.c), a trace function before
   (line_trace.c). Here is what runs at each line; the rest is in line_events.c. */
#pragma once

#include "lines/traced_code.h"

/* Events that cannot be told of one thread are told of others, or of none. */
enum { EVENTS_BY_THREAD = !HAS_MONITORING };

/* Have the events told; why not, or NULL. */
const char *line_events_begin(void);

/* What was missed meanwhile, or NULL. */
const char *line_events_end(void);

/* A function begins, or goes on in the line where it was; one that is found in progress is as if it began just now. */
void function_begins(struct line_thread *thread, struct traced_code *known, frame *here, bool begins);

/* A line of a frame that is not the innermost known: tracing was switched on inside of it, or an end was not seen. NULL where it
   is not to be counted. */
struct line_thread *find_frame(PyThreadState *state, frame *here);

/* The line from which line trace is switched off is not to be counted: its function is one of the next outward. */
void uncount_line(PyThreadState *state);

/* Lines are events, or recording is paused. */
void come_to_apart(struct line_thread *thread, const struct plan *plan, uint64_t flagged, frame *here);

static inline struct line_thread *current_lines(void)
{
    struct thread *thread = current_thread;
    return LIKELY(thread != NULL) ? thread->lines : NULL;
}

static inline struct line_thread *lines_of(PyThreadState *state)
{
    struct line_thread *thread = current_lines();
    return LIKELY(thread && thread->stretch == lines.stretch) ? thread : lines_thread(state);
}

/* What the quick ways below leave to be done: where the clock is to be asked again, where recording is paused, lines as events, ends that
   were not seen. They are called last, so that the quick ways save no registers. */
void function_ends_apart(struct line_thread *thread, frame *here);
void line_begins_apart(struct line_thread *thread, uint64_t flagged, frame *here);

static inline int64_t ticks_after_end(const struct line_frame *ended)
{
    return lines.costs.call - lines.costs.end + (UNLIKELY(ended->coroutine) ? lines.costs.coroutine : 0);
}

static inline __attribute__((always_inline)) void function_ends(struct line_thread *thread, frame *here)
{
    bool is_plain = !thread->apart && thread->top->frame == here;
    if (UNLIKELY(!is_plain || !lines_begin_plain(thread, lines.costs.end))) {
        function_ends_apart(thread, here);
        return;
    }
    int64_t after = ticks_after_end(thread->top);
    lines_pop(thread);
    lines_end_plain(thread, after);
}

/* Is the line come to by a loop's way back? Else it is come to from before. */
static inline bool is_way_back(const struct line_thread *thread, const struct plan *plan, uint32_t spot)
{
    const struct spot *here = &plan->spot[spot], *before = &plan->spot[thread->line - thread->top->table->lines];
    bool is_behind = before->instruction > here->instruction || before->line == here->line;
    return here->flags & SPOT_BACK || (before != &plan->spot[ENTRY_SPOT] && is_behind);
}

static inline void count_line(struct line_thread *thread, const struct plan *plan, uint64_t flagged)
{
    uint32_t spot = (uint32_t)flagged & SPOT_NUMBER;
    struct line *line = &thread->top->lines[spot];
    line->executed++;
    /* CPython 3.12.1 tells a line again where what was called from its middle has returned. */
    if (UNLIKELY(thread->line == line || ((uint32_t)flagged >> SPOT_FLAGS && is_way_back(thread, plan, spot))))
        line->back++;
    lines_go_to(thread, line);
}

static inline void come_to(struct line_thread *thread, const struct plan *plan, uint64_t flagged, frame *here)
{
    if (UNLIKELY(thread->apart))
        come_to_apart(thread, plan, flagged, here);
    else
        count_line(thread, plan, flagged);
}

/* `here` is the innermost function. */
static inline __attribute__((always_inline)) void line_begins(struct line_thread *thread, frame *here)
{
    const struct plan *plan = thread->top->plan;
    size_t unit = (size_t)(frame_place(here) - (const _Py_CODEUNIT *)thread->top->code);
    uint64_t spot = plan->spot_of[LIKELY(unit < plan->units) ? unit : 0];
    if (UNLIKELY(thread->apart || !lines_begin_plain(thread, ticks_before(spot)))) {
        line_begins_apart(thread, spot, here);
        return;
    }
    count_line(thread, plan, spot);
    lines_end_plain(thread, ticks_after(spot));
}
