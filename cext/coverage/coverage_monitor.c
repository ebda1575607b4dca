/* Statement coverage by sys.monitoring: each place has one event, and no more. With contexts it has one each
   time. */
#include "coverage/coverage_events.h"

#if HAS_MONITORING

#include "cpython/monitoring.h"

static struct {
    int line, instruction, branch;
} coverage_events;

static struct monitor_tool coverage_tool;

static frame *innermost_frame(void)
{
    return frame_innermost(running_state());
}

static PyObject *again_or_not(void)
{
    return coverage.contexts ? Py_NewRef(Py_None) : not_again();
}

/* A code object has events from now on. */
static void observe(struct covered_code *known)
{
    const struct covered_plan *plan = plan_covered(known);
    known->observed = 1;
    if (!plan)
        return;
    int events = plan->has_parts ? coverage_events.instruction : coverage_events.line;
    monitor_code(&coverage_tool, known->is.code, events | (plan->branches ? coverage_events.branch : 0));
}

static PyObject *see_start(PyObject *self, PyObject *const *arguments, size_t count, PyObject *names)
{
    (void)self, (void)count, (void)names;
    frame *here = innermost_frame();
    struct covered_code *known = here ? covered_code_of((PyCodeObject *)*arguments, here) : NULL;
    if (known && known->is.chosen && !known->observed && coverage_is_here()) {
        observe(known);
        table_of(known, here);
    }
    return not_again();
}

static struct covered_code *known_covered(PyObject *code)
{
    struct covered_code *known = covered_code_known((PyCodeObject *)code);
    return LIKELY(known && known->plan) ? known : NULL;
}

static PyObject *see_place(PyObject *code, frame *here, uint32_t unit,
                           uint32_t (*place_at)(const struct covered_plan *plan, uint32_t unit))
{
    struct covered_code *known = known_covered(code);
    if (UNLIKELY(recorder_paused()))
        Py_RETURN_NONE;
    if (LIKELY(known && here))
        come_to(known, place_at(known->plan, unit), here);
    return again_or_not();
}

static PyObject *see_line(PyObject *self, PyObject *const *arguments, size_t count, PyObject *names)
{
    (void)self, (void)count, (void)names;
    frame *here = innermost_frame();
    return see_place(arguments[0], here, here ? (uint32_t)frame_instruction(here) : 0, place_of_unit);
}

static bool has_ended(PyCodeObject *code, frame *here, const struct planned_branch *planned)
{
    PyObject *exception = frame_value(here, (uint32_t)code->co_nlocalsplus + planned->depth);
    return exception && PyErr_GivenExceptionMatches(exception, PyExc_StopAsyncIteration);
}

/* False if it is not known yet which way an `async for` went: its last instruction may have another exception. */
static bool see_awaited(struct covered_code *known, frame *here, uint32_t unit)
{
    const struct planned_branch *planned = awaited_at(known->plan, unit);
    if (!planned)
        return true;
    bool is_last = unit == planned->unit;
    if (is_last && !has_ended(known->is.code, here, planned))
        return false;
    struct coverage_table *table = coverage_is_here() && !recorder_paused() ? table_of(known, here) : NULL;
    if (table)
        note_branch(branch_in(table, (uint32_t)(planned - known->plan->branch)), planned, is_last ? planned->target : unit);
    return table != NULL;
}

static PyObject *see_instruction(PyObject *self, PyObject *const *arguments, size_t count, PyObject *names)
{
    (void)self, (void)count, (void)names;
    frame *here = innermost_frame();
    struct covered_code *known = known_covered(arguments[0]);
    uint32_t unit = (uint32_t)PyLong_AsLong(arguments[1]) / 2;
    PyObject *again = see_place(arguments[0], here, unit, place_begun_by);
    if (UNLIKELY(known && here && !see_awaited(known, here, unit)))
        Py_SETREF(again, Py_NewRef(Py_None));
    return again;
}

/* A jump has events until it went both ways. */
static PyObject *see_branch(PyObject *self, PyObject *const *arguments, size_t count, PyObject *names)
{
    (void)self, (void)count, (void)names;
    frame *here = innermost_frame();
    struct covered_code *known = known_covered(arguments[0]);
    uint32_t unit = (uint32_t)PyLong_AsLong(arguments[1]) / 2, to = (uint32_t)PyLong_AsLong(arguments[2]) / 2;
    const struct planned_branch *planned = known ? branch_told(known->plan, unit, to) : NULL;
    if (!planned || !here)
        return not_again();
    struct coverage_table *table = coverage_is_here() && !recorder_paused() ? table_of(known, here) : NULL;
    if (!table)
        Py_RETURN_NONE;
    struct covered_branch *branch = branch_in(table, (uint32_t)(planned - known->plan->branch));
    note_branch(branch, planned, to);
    return branch->went_next && branch->went_other ? again_or_not() : Py_NewRef(Py_None);
}

#define TOLD_OF_BRANCH(name) {name, see_branch},

static const struct monitored coverage_events_told[] = {
    {"PY_START", see_start}, {"LINE", see_line}, {"INSTRUCTION", see_instruction}, BRANCH_EVENTS(TOLD_OF_BRANCH) {0},
};

static struct monitor_tool coverage_tool = {.numbers = {3, 4}, .events = coverage_events_told};

/* Functions that are in progress are seen from their next line on. */
static void observe_running(void)
{
    PyThreadState *state = PyInterpreterState_ThreadHead(covered_codes.interpreter);
    for (; state; state = PyThreadState_Next(state))
        for (frame *here = frame_innermost(state); here; here = frame_outer(here)) {
            struct covered_code *known = covered_code_of(frame_code(here), here);
            if (known && known->is.chosen && !known->observed)
                observe(known);
        }
}

const char *coverage_events_begin(void)
{
    const char *why = monitoring_begin(&coverage_tool);
    if (why)
        return why;
    coverage_events.line = event_number("LINE");
    coverage_events.instruction = event_number("INSTRUCTION");
    coverage_events.branch = branch_event_numbers();
    observe_running();
    monitor_all(&coverage_tool, event_number("PY_START"));
    return NULL;
}

const char *coverage_events_end(void)
{
    for (struct known_code *known = covered_codes.first; known; known = known->next)
        if (((struct covered_code *)known)->observed) {
            ((struct covered_code *)known)->observed = 0;
            monitor_code(&coverage_tool, known->code, 0);
        }
    monitoring_end(&coverage_tool);
    return NULL;
}

#endif
