/* Line trace by sys.monitoring: callbacks in C. Events are asked for of the chosen code objects alone; of all others only
   their first beginning is seen, and then no more. */
#include "lines/line_events.h"

#if HAS_MONITORING

#include "cpython/monitoring.h"

static struct {
    int all;          /* of a chosen code object */
    int jump, branch; /* the same, of one with jumps back in one line */
} line_events;

static struct monitor_tool line_tool;

/* From now on the code's own events are told. */
static void observe(struct traced_code *known)
{
    known->observed = 1;
    const struct plan *plan = plan_traced(known);
    int events = line_events.all;
    if (plan && plan->ways_back_in_line)
        events |= line_events.jump | (plan->entries_by_branch ? line_events.branch : 0);
    if (plan && plan->has_untold)
        events |= line_events.branch;
    monitor_code(&line_tool, known->is.code, events);
}

static __attribute__((noinline)) struct traced_code *look_and_observe(PyCodeObject *code, frame *here)
{
    struct traced_code *known = traced_code_of(code, here);
    if (known && known->is.chosen && !known->observed)
        observe(known);
    return known;
}

static PyObject *see_begin(PyObject *const *arguments, bool begins)
{
    uint64_t now = ticks_now();
    PyThreadState *state = running_state();
    frame *here = frame_innermost(state);
    struct line_thread *thread = lines_of(state);
    struct traced_code *known = here ? traced_code_known((PyCodeObject *)*arguments) : NULL;
    if (LIKELY(thread != NULL))
        lines_begin(thread, now, 0);
    if (UNLIKELY(!known || known->is.serial != traced_codes.choice.serial || !known->observed))
        known = here ? look_and_observe((PyCodeObject *)*arguments, here) : NULL;
    bool is_traced = known && known->is.chosen && lines.on;
    if (LIKELY(thread != NULL)) {
        if (is_traced)
            function_begins(thread, known, here, begins);
        lines_end(thread, begins ? 0 : lines.costs.resume);
    }
    bool is_told_by_line = is_traced && begins && known->plan && known->plan->begin;
    return is_traced && !is_told_by_line ? Py_NewRef(Py_None) : not_again();
}

static PyObject *see_start(PyObject *self, PyObject *const *arguments, size_t count, PyObject *names)
{
    (void)self, (void)count, (void)names;
    return see_begin(arguments, true);
}

static PyObject *see_resume(PyObject *self, PyObject *const *arguments, size_t count, PyObject *names)
{
    (void)self, (void)count, (void)names;
    return see_begin(arguments, false);
}

/* It cannot be switched off for a place. */
static PyObject *see_throw(PyObject *self, PyObject *const *arguments, size_t count, PyObject *names)
{
    (void)self, (void)count, (void)names;
    Py_DECREF(see_begin(arguments, false));
    Py_RETURN_NONE;
}

static PyObject *see_end(PyObject *self, PyObject *const *arguments, size_t count, PyObject *names)
{
    (void)self, (void)arguments, (void)count, (void)names;
    struct line_thread *thread = current_lines();
    if (LIKELY(thread != NULL))
        function_ends(thread, frame_running(thread->state));
    Py_RETURN_NONE;
}

/* All functions' are told, those not chosen too. */
static PyObject *see_unwind(PyObject *self, PyObject *const *arguments, size_t count, PyObject *names)
{
    (void)self, (void)count, (void)names;
    struct line_thread *thread = current_lines();
    frame *here = frame_innermost(running_state());
    struct traced_code *known = thread && thread->beyond ? traced_code_known((PyCodeObject *)*arguments) : NULL;
    if (thread && (thread->top->frame == here || (known && known->is.chosen)))
        function_ends(thread, here);
    Py_RETURN_NONE;
}

/* Can the function's lines go to the table that is found first, as its caller's do? */
static inline bool is_entered_quickly(const struct line_thread *thread, const struct traced_code *known)
{
    const struct line_frame *caller = thread->top;
    return !thread->apart && thread->stretch == lines.stretch && thread->thread->greenlet == caller->greenlet &&
           known->plan && !known->coroutine && known->tables && line_table_is_of(known->tables, caller->owner) &&
           lines_have_room(thread);
}

static inline void push_quickly(struct line_thread *thread, const struct traced_code *known, frame *here, struct line *line)
{
    struct line_frame *caller = thread->top, *next = lines_next(thread);
    next->frame = here;
    next->table = known->tables;
    next->plan = known->plan;
    next->code = code_begin(known->is.code);
    next->lines = known->tables->lines;
    next->line = line;
    next->owner = caller->owner;
    next->coroutine = 0;
    next->greenlet = caller->greenlet;
    lines_push(thread);
}

/* The first line of a function that begins; false where it is not that simple. */
static inline bool enter_quickly(struct line_thread *thread, struct traced_code *known, frame *here)
{
    if (UNLIKELY(!is_entered_quickly(thread, known)))
        return false;
    size_t unit = (size_t)(frame_place(here) - code_begin(known->is.code));
    if (UNLIKELY(unit != known->plan->begin))
        return false;
    uint64_t spot = known->plan->spot_of[unit];
    struct line *line = &known->tables->lines[(uint32_t)spot & SPOT_NUMBER];
    if (UNLIKELY(!lines_begin_plain(thread, ticks_before(spot))))
        return false;
    push_quickly(thread, known, here, line);
    known->tables->function->calls++;
    line->executed++;
    lines_end_plain(thread, ticks_after(spot));
    return true;
}

/* The same where it is not. */
static bool function_begins_with_line(PyCodeObject *code)
{
    PyThreadState *state = running_state();
    struct traced_code *known = traced_code_known(code);
    frame *here = frame_running(state);
    const struct plan *plan = known ? known->plan : NULL;
    uint32_t unit = (uint32_t)(frame_place(here) - code_begin(code));
    if (!plan || unit != plan->begin || !lines.on)
        return false;
    uint64_t now = ticks_now(), spot = plan->spot_of[unit];
    struct line_thread *thread = lines_of(state);
    if (UNLIKELY(!thread))
        return true;
    lines_begin(thread, now, ticks_before(spot));
    function_begins(thread, known, here, true);
    if (LIKELY(thread->top->frame == here)) {
        thread->apart &= ~APART_BEGUN;
        come_to(thread, plan, spot, here);
    }
    lines_end(thread, ticks_after(spot));
    return true;
}

static __attribute__((noinline)) void line_begins_elsewhere(PyObject *const *arguments)
{
    struct line_thread *current = current_lines();
    struct traced_code *known = traced_code_known((PyCodeObject *)*arguments);
    if (LIKELY(current && known) && enter_quickly(current, known, frame_running(current->state)))
        return;
    if (function_begins_with_line((PyCodeObject *)*arguments))
        return;
    PyThreadState *state = running_state();
    frame *here = frame_innermost(state);
    struct line_thread *thread = find_frame(state, here);
    if (thread)
        line_begins(thread, here);
}

static PyObject *see_line(PyObject *self, PyObject *const *arguments, size_t count, PyObject *names)
{
    (void)self, (void)count, (void)names;
    struct line_thread *thread = current_lines();
    frame *here = LIKELY(thread != NULL) ? frame_running(thread->state) : NULL;
    if (LIKELY(thread && thread->top->frame == here))
        line_begins(thread, here);
    else
        line_begins_elsewhere(arguments);
    Py_RETURN_NONE;
}

static inline struct line_thread *innermost(PyThreadState *state, frame *here)
{
    struct line_thread *thread = current_lines();
    return LIKELY(thread && thread->top->frame == here) ? thread : find_frame(state, here);
}

/* The last instruction whose number CPython has ready as an object: it is told as an offset in bytes. */
enum { HIGH_UNIT = SMALL_NUMBERS / 2 };

static int64_t jump_ticks(size_t from, size_t to)
{
    int64_t one = from > HIGH_UNIT ? lines.costs.high_jump : lines.costs.jump;
    int64_t other = to > HIGH_UNIT ? lines.costs.high_jump : lines.costs.jump;
    return (one + other) / 2;
}

/* A jump within a line: its way back, if it is one. */
static PyObject *see_jump(PyObject *self, PyObject *const *arguments, size_t count, PyObject *names)
{
    (void)self, (void)count, (void)names;
    uint64_t now = ticks_now();
    PyThreadState *state = running_state();
    frame *here = frame_innermost(state);
    struct line_thread *thread = innermost(state, here);
    if (!thread)
        Py_RETURN_NONE;
    const struct plan *plan = thread->top->plan;
    size_t from = (size_t)PyLong_AsLong(arguments[1]) / 2, to = (size_t)PyLong_AsLong(arguments[2]) / 2;
    if (from >= plan->units || to >= from)
        return not_again();
    uint32_t left = plan->spot_of[from] & SPOT_NUMBER;
    uint64_t spot = plan->spot_of[to];
    if (plan->spot[left].line != plan->spot[spot & SPOT_NUMBER].line)
        return not_again();
    lines_begin(thread, now, jump_ticks(from, to) + ticks_before(spot));
    come_to(thread, plan, spot, here);
    lines_end(thread, 0);
    Py_RETURN_NONE;
}

/* A loop of one line whose body is come to by the test at its top: its body is entered. False where the branch is of none. */
static bool enter_body(struct line_thread *thread, const struct plan *plan, uint32_t from, uint32_t to)
{
    int line = from < plan->units ? plan->spot[plan->spot_of[from] & SPOT_NUMBER].line : -1;
    for (uint32_t index = 0; index < plan->loops; index++) {
        const struct planned_loop *loop = &plan->loop[index];
        if (!loop->in_one_line || loop->is_for || loop->line != line || from >= loop->target)
            continue;
        thread->top->table->loops[index].passes += to == loop->target && !thread->paused;
        return true;
    }
    return false;
}

static bool is_untold(const struct plan *plan, uint32_t unit)
{
    const struct spot *spot = unit < plan->units ? &plan->spot[plan->spot_of[unit] & SPOT_NUMBER] : plan->spot;
    return spot->is_untold && spot->instruction == unit;
}

static PyObject *see_branch(PyObject *self, PyObject *const *arguments, size_t count, PyObject *names)
{
    (void)self, (void)count, (void)names;
    uint64_t now = ticks_now();
    PyThreadState *state = running_state();
    frame *here = frame_innermost(state);
    struct line_thread *thread = innermost(state, here);
    if (!thread)
        Py_RETURN_NONE;
    const struct plan *plan = thread->top->plan;
    uint32_t from = (uint32_t)PyLong_AsLong(arguments[1]) / 2, to = (uint32_t)PyLong_AsLong(arguments[2]) / 2;
    lines_begin(thread, now, jump_ticks(from, to));
    bool is_line = is_untold(plan, to);
    if (is_line)
        come_to(thread, plan, plan->spot_of[to], here);
    bool is_wanted = is_line || enter_body(thread, plan, from, to);
    lines_end(thread, 0);
    return is_wanted ? Py_NewRef(Py_None) : not_again();
}

#define TOLD_OF_BRANCH(name) {name, see_branch},

static const struct monitored line_events_told[] = {
    {"PY_START", see_start}, {"PY_RESUME", see_resume}, {"PY_THROW", see_throw},
    {"PY_RETURN", see_end},  {"PY_YIELD", see_end},     {"PY_UNWIND", see_unwind},
    {"LINE", see_line},      {"JUMP", see_jump},        BRANCH_EVENTS(TOLD_OF_BRANCH) {0},
};

static struct monitor_tool line_tool = {.numbers = {4, 3}, .events = line_events_told};

/* Functions that are in progress are seen from their next line on, of all threads. */
static void observe_running(void)
{
    PyThreadState *state = PyInterpreterState_ThreadHead(traced_codes.interpreter);
    for (; state; state = PyThreadState_Next(state))
        for (frame *here = frame_innermost(state); here; here = frame_outer(here)) {
            struct traced_code *known = traced_code_of(frame_code(here), here);
            if (known && known->is.chosen && !known->observed)
                observe(known);
        }
}

static void observe_no_more(void)
{
    for (struct traced_code *known = first_traced_code(); known; known = next_traced_code(known)) {
        if (!known->observed)
            continue;
        known->observed = 0;
        monitor_code(&line_tool, known->is.code, 0);
    }
}

static void find_line_events(void)
{
    line_events.all = event_number("PY_START") | event_number("PY_RESUME") | event_number("PY_RETURN") |
                      event_number("PY_YIELD") | event_number("LINE");
    line_events.jump = event_number("JUMP");
    line_events.branch = branch_event_numbers();
}

const char *line_events_begin(void)
{
    const char *why = monitoring_begin(&line_tool);
    if (why)
        return why;
    find_line_events();
    observe_running();
    monitor_all(&line_tool, event_number("PY_START") | event_number("PY_RESUME") | event_number("PY_THROW") |
                                event_number("PY_UNWIND"));
    return NULL;
}

const char *line_events_end(void)
{
    monitor_all(&line_tool, 0); /* before: beginnings that are told no more are told again then */
    observe_no_more();
    monitoring_end(&line_tool);
    return NULL;
}


#endif
