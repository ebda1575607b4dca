/* A trace function in C on 3.11. It stands in the threads' states as PyEval_SetTrace puts it there, without the audit event that
   this raises. A trace function of the program's own goes before ours, which is back when there is none any more: doctest and
   debuggers leave sys.settrace(None) behind. */
#pragma once

#include "cpython/known_code.h"

/* False where somebody else's trace function is there. */
static bool trace_thread(PyThreadState *state, Py_tracefunc ours)
{
    if (state->c_tracefunc && state->c_tracefunc != ours)
        return false;
    state->c_tracefunc = ours;
    state->cframe->use_tracing = 255;
    return true;
}

/* False where it is no longer ours. */
static bool trace_thread_no_more(PyThreadState *state, Py_tracefunc ours)
{
    if (state->c_tracefunc != ours)
        return state->c_tracefunc == NULL;
    state->c_tracefunc = NULL;
    state->cframe->use_tracing = state->c_profilefunc ? 255 : 0;
    return true;
}

/* How many threads have a trace function that is not ours. */
static int trace_threads(Py_tracefunc ours, bool on)
{
    int others = 0;
    PyThreadState *state = PyInterpreterState_ThreadHead(known_codes.interpreter);
    for (; state; state = PyThreadState_Next(state))
        others += on ? !trace_thread(state, ours) : !trace_thread_no_more(state, ours);
    return others;
}

/* --- the program's own trace functions */

static struct {
    PyMethodDef *definition;
    PyCFunction real;
    Py_tracefunc ours;
    bool (*is_on)(void);
    void (*lend)(void); /* another one will be there */
} settrace;

/* sys.settrace. */
static PyObject *call_settrace(PyObject *module, PyObject *wanted)
{
    PyThreadState *state = running_state();
    bool is_ours = settrace.is_on() && state->interp == known_codes.interpreter;
    if (is_ours && wanted != Py_None)
        settrace.lend();
    PyObject *done = settrace.real(module, wanted);
    if (done && is_ours && wanted == Py_None)
        trace_thread(state, settrace.ours);
    return done;
}

static void watch_settrace(Py_tracefunc ours, bool (*is_on)(void), void (*lend)(void))
{
    PyObject *function = PySys_GetObject("settrace");
    PyMethodDef *definition = function && PyCFunction_CheckExact(function) ? ((PyCFunctionObject *)function)->m_ml : NULL;
    if (!definition || definition->ml_flags != METH_O || definition->ml_meth == call_settrace)
        return;
    settrace.ours = ours;
    settrace.is_on = is_on;
    settrace.lend = lend;
    settrace.definition = definition;
    settrace.real = definition->ml_meth;
    definition->ml_meth = call_settrace;
}

static void watch_settrace_no_more(void)
{
    if (settrace.definition && settrace.definition->ml_meth == call_settrace)
        settrace.definition->ml_meth = settrace.real;
    settrace.definition = NULL;
}

/* No more: gives what was missed meanwhile, or NULL. */
static const char *trace_no_more(Py_tracefunc ours)
{
    watch_settrace_no_more();
    return trace_threads(ours, false) ? "another trace function has taken the place" : NULL;
}
