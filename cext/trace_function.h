/* A trace function in C on 3.11. It stands in the threads' states as PyEval_SetTrace puts it there, without the audit event that
   this raises. */
#pragma once

#include "known_code.h"

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
