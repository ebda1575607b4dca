#include "coverage/coverage_trace.h"

#if !HAS_MONITORING

#include <frameobject.h>

#include "cpython/trace_function.h"

enum { PENDING_JUMPS = 1024 }; /* a power of two */

/* Conditional jumps that are being executed, by their frames: where they lead to is the frame's next instruction. */
static struct pending_jump {
    frame *frame;
    struct covered_code *known;
    const struct planned_branch *planned;
} pending_jumps[PENDING_JUMPS];

static struct pending_jump *pending_jump(frame *here)
{
    return &pending_jumps[((uintptr_t)here >> 4) % PENDING_JUMPS];
}

static struct covered_code *covered_at(frame *here)
{
    struct covered_code *known = covered_code_of(frame_code(here), here);
    return known && known->is.chosen && !recorder_paused() && plan_covered(known) ? known : NULL;
}

static void begin_or_go_on(struct covered_code *known, PyFrameObject *object)
{
    if (coverage_is_here())
        table_of(known, object->f_frame);
    if (needs_instructions(known->plan))
        object->f_trace_opcodes = 1;
}

static void see_line(struct covered_code *known, PyFrameObject *object)
{
    if (needs_instructions(known->plan))
        object->f_trace_opcodes = 1; /* this one is next */
    else
        come_to(known, place_of_unit(known->plan, (uint32_t)frame_instruction(object->f_frame)), object->f_frame);
}

static void settle_jump(struct covered_code *known, frame *here, uint32_t unit)
{
    struct pending_jump *jump = pending_jump(here);
    if (jump->frame != here)
        return;
    jump->frame = NULL;
    bool led_here = jump->known == known && (unit == jump->planned->next_unit || unit == jump->planned->target);
    struct coverage_table *table = led_here && coverage_is_here() ? table_of(known, here) : NULL;
    if (table)
        note_branch(branch_in(table, (uint32_t)(jump->planned - known->plan->branch)), jump->planned, unit);
}

/* The body of an `async for` begins. */
static void see_awaited(struct covered_code *known, frame *here, uint32_t unit)
{
    const struct planned_branch *planned = awaited_at(known->plan, unit);
    struct coverage_table *table = planned && unit == planned->next_unit && coverage_is_here() ? table_of(known, here) : NULL;
    if (table)
        note_branch(branch_in(table, (uint32_t)(planned - known->plan->branch)), planned, unit);
}

static void see_instruction(struct covered_code *known, frame *here)
{
    uint32_t unit = (uint32_t)frame_instruction(here);
    come_to(known, place_begun_by(known->plan, unit), here);
    if (!known->plan->branches)
        return;
    settle_jump(known, here, unit);
    see_awaited(known, here, unit);
    const struct planned_branch *planned = branch_at(known->plan, unit);
    if (planned)
        *pending_jump(here) = (struct pending_jump){here, known, planned};
}

static int see_event(PyObject *nothing, PyFrameObject *object, int what, PyObject *argument)
{
    (void)nothing, (void)argument;
    struct covered_code *known = coverage.on && what != PyTrace_RETURN ? covered_at(object->f_frame) : NULL;
    if (!known)
        return 0;
    if (what == PyTrace_LINE)
        see_line(known, object);
    else if (what == PyTrace_OPCODE)
        see_instruction(known, object->f_frame);
    else if (what == PyTrace_CALL)
        begin_or_go_on(known, object);
    return 0;
}

static struct tracer coverage_tracer;

/* A thread that has just begun. */
static void trace_new_thread(void)
{
    PyThreadState *state = running_state();
    if (coverage.on && state && state->interp == covered_codes.interpreter)
        trace_thread(&coverage_tracer, state);
}

/* --- the program's own trace functions */

/* The next tracer must not get instruction events because of us. */
static void tell_no_instructions(void)
{
    frame *here = frame_innermost(running_state());
    for (; here; here = frame_outer(here)) {
        struct covered_code *known = covered_code_known(frame_code(here));
        if (here->frame_obj && known && known->plan && needs_instructions(known->plan))
            here->frame_obj->f_trace_opcodes = 0;
    }
}

static void lend(void)
{
    static uint32_t said; /* in the files with which serial */
    tell_no_instructions();
    if (said == coverage.serial || !coverage_is_here())
        return;
    said = coverage.serial;
    recorder_say("missed", "what=\"coverage\" why=\"what ran under the program's own trace function (sys.settrace)\" ");
}

static bool is_on(void)
{
    return coverage.on;
}

static bool is_rest_traced;

static struct tracer coverage_tracer = {.see = see_event, .is_on = is_on, .lend = lend};

const char *coverage_trace_begin(void)
{
    coverage_tracer.interpreter = covered_codes.interpreter;
    if (trace_threads(&coverage_tracer))
        return "another trace function is installed";
    recorder.thread_begins = trace_new_thread;
    watch_settrace(&coverage_tracer);
    return NULL;
}

const char *coverage_trace_end(void)
{
    if (recorder.thread_begins == trace_new_thread)
        recorder.thread_begins = NULL;
    is_rest_traced = false;
    return trace_no_more(&coverage_tracer);
}

/* --- beside probes */

bool coverage_is_rest_traced(void)
{
    return is_rest_traced;
}

void coverage_trace_the_rest(void)
{
    if (is_rest_traced)
        return;
    is_rest_traced = true;
    if (coverage_trace_begin())
        recorder_say("missed", "what=\"coverage\" why=\"code without room for probes: another trace function is installed\" ");
}

#endif
