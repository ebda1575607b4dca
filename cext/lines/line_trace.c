/* Line trace on 3.11: a trace function in C. The interpreter asks at each instruction whether a line begins, in code that is not
   chosen as well. */
#include "lines/line_events.h"

#if !HAS_MONITORING

#include <frameobject.h>

#include "cpython/trace_function.h"

/* Of what goes on where it was suspended, RESUME has another argument, or it is not there: an exception was thrown. */
static bool is_beginning(frame *here)
{
    int opcode = _Py_OPCODE(*here->prev_instr);
    return (opcode == RESUME || opcode == RESUME_QUICK) && _Py_OPARG(*here->prev_instr) == 0;
}

static void see_call(frame *here)
{
    uint64_t now = ticks_now();
    struct line_thread *thread = lines_of(running_state());
    if (UNLIKELY(!thread))
        return;
    lines_begin(thread, now, 0);
    struct traced_code *known = traced_code_of(frame_code(here), here);
    if (known && known->is.chosen)
        function_begins(thread, known, here, is_beginning(here));
    lines_end(thread, is_beginning(here) ? 0 : lines.costs.resume);
}

static bool is_passed_over(frame *here)
{
    struct traced_code *known = traced_code_known(frame_code(here));
    return known && known->is.serial == traced_codes.choice.serial && !known->is.chosen;
}

static void see_line(frame *here)
{
    struct line_thread *thread = current_lines();
    if (UNLIKELY(!thread || thread->top->frame != here))
        thread = is_passed_over(here) ? NULL : find_frame(running_state(), here);
    if (LIKELY(thread != NULL))
        line_begins(thread, here);
}

/* What the interpreter does to tell of it, the line's time has not. A coroutine that ends does so by an exception while it is traced. */
static void see_exception(frame *here, PyObject *told)
{
    uint64_t now = ticks_now();
    struct line_thread *thread = current_lines();
    if (!thread || thread->top->frame != here || !told || !PyTuple_Check(told))
        return;
    bool stops = PyTuple_GET_ITEM(told, 0) == PyExc_StopIteration;
    lines_begin(thread, now, stops ? lines.costs.stop : lines.costs.exception);
    lines_end(thread, 0);
}

static int see_event(PyObject *nothing, PyFrameObject *object, int what, PyObject *argument)
{
    (void)nothing;
    frame *here = object->f_frame;
    if (UNLIKELY(!lines.on))
        return 0;
    if (LIKELY(what == PyTrace_LINE))
        see_line(here);
    else if (what == PyTrace_CALL)
        see_call(here);
    else if (what == PyTrace_RETURN && current_lines())
        function_ends(current_lines(), here);
    else if (what == PyTrace_EXCEPTION)
        see_exception(here, argument);
    return 0;
}

static struct tracer line_tracer;

/* A thread that has just begun. */
static void trace_new_thread(void)
{
    PyThreadState *state = running_state();
    if (lines.on && state && state->interp == traced_codes.interpreter)
        trace_thread(&line_tracer, state);
}

static bool is_on(void)
{
    return lines.on;
}

static void say_what_is_not_seen(void)
{
    static uint32_t said; /* in which stretch */
    if (said == lines.stretch || !recorder_directory())
        return;
    said = lines.stretch;
    recorder_say("missed", "what=\"lines\" why=\"what ran under the program's own trace function (sys.settrace)\" ");
}

static struct tracer line_tracer = {.see = see_event, .is_on = is_on, .lend = say_what_is_not_seen};

const char *line_events_begin(void)
{
    recorder.thread_begins = trace_new_thread;
    line_tracer.interpreter = traced_codes.interpreter;
    watch_settrace(&line_tracer);
    return trace_threads(&line_tracer) ? "another trace function is there" : NULL;
}

const char *line_events_end(void)
{
    recorder.thread_begins = NULL;
    return trace_no_more(&line_tracer);
}

#endif
