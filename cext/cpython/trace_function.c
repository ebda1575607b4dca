#include "cpython/trace_function.h"

#include "cpython/version.h"

#if !HAS_MONITORING

bool trace_thread(const struct tracer *tracer, PyThreadState *state)
{
    if (state->c_tracefunc && state->c_tracefunc != tracer->see)
        return false;
    state->c_tracefunc = tracer->see;
    state->cframe->use_tracing = 255;
    return true;
}

/* False if it is no longer ours. */
static bool trace_thread_no_more(const struct tracer *tracer, PyThreadState *state)
{
    if (state->c_tracefunc != tracer->see)
        return state->c_tracefunc == NULL;
    state->c_tracefunc = NULL;
    state->cframe->use_tracing = state->c_profilefunc ? 255 : 0;
    return true;
}

static int change_threads(const struct tracer *tracer, bool (*change)(const struct tracer *, PyThreadState *))
{
    int others = 0;
    PyThreadState *state = PyInterpreterState_ThreadHead(tracer->interpreter);
    for (; state; state = PyThreadState_Next(state))
        others += !change(tracer, state);
    return others;
}

int trace_threads(const struct tracer *tracer)
{
    return change_threads(tracer, trace_thread);
}

/* --- the program's own trace functions */

static struct {
    PyMethodDef *definition;
    PyCFunction real;
    struct tracer *first; /* of those that watch */
} settrace;

static bool is_of(const struct tracer *tracer, const PyThreadState *state)
{
    return tracer->is_on() && state->interp == tracer->interpreter;
}

/* sys.settrace. */
static PyObject *call_settrace(PyObject *module, PyObject *wanted)
{
    PyThreadState *state = running_state();
    for (struct tracer *each = settrace.first; each && wanted != Py_None; each = each->next)
        if (is_of(each, state))
            each->lend();
    PyObject *done = settrace.real(module, wanted);
    for (struct tracer *each = settrace.first; each && done && wanted == Py_None; each = each->next)
        if (is_of(each, state))
            trace_thread(each, state);
    return done;
}

/* False if sys.settrace is not the interpreter's. */
static bool replace_settrace(void)
{
    PyObject *function = PySys_GetObject("settrace");
    PyMethodDef *definition = function && PyCFunction_CheckExact(function) ? ((PyCFunctionObject *)function)->m_ml : NULL;
    if (!definition || definition->ml_flags != METH_O)
        return false;
    settrace.definition = definition;
    settrace.real = definition->ml_meth;
    definition->ml_meth = call_settrace;
    return true;
}

/* Those that came first come first: what they put into a thread stays. */
static struct tracer **end_of_watchers(void)
{
    struct tracer **end = &settrace.first;
    while (*end)
        end = &(*end)->next;
    return end;
}

void watch_settrace(struct tracer *tracer)
{
    if (tracer->is_watching || (!settrace.definition && !replace_settrace()))
        return;
    tracer->is_watching = true;
    tracer->next = NULL;
    *end_of_watchers() = tracer;
}

static void restore_settrace(void)
{
    if (settrace.definition->ml_meth == call_settrace)
        settrace.definition->ml_meth = settrace.real;
    settrace.definition = NULL;
}

static void watch_no_more(struct tracer *tracer)
{
    struct tracer **place = &settrace.first;
    if (!tracer->is_watching)
        return;
    while (*place != tracer)
        place = &(*place)->next;
    *place = tracer->next;
    tracer->is_watching = false;
    if (!settrace.first)
        restore_settrace();
}

const char *trace_no_more(struct tracer *tracer)
{
    watch_no_more(tracer);
    return change_threads(tracer, trace_thread_no_more) ? "another trace function has taken the place" : NULL;
}

#endif
