/* Statement coverage on 3.11: by a trace function or, if requested, by probes, inserted when code is about to be
   executed for the first time. If every execution must be seen (contexts), or branches, the trace function is used
   anyway. */
#include "coverage/coverage_events.h"

#if !HAS_MONITORING

#include "coverage/coverage_trace.h"
#include "coverage/expected_code.h"
#include "coverage/probed_code.h"
#include "coverage/probes.h"

static bool are_probes_on;

static void put_code_in_function(PyObject *object)
{
    PyFunctionObject *function = (PyFunctionObject *)object;
    frame here = {.f_globals = function->func_globals};
    PyCodeObject *made = PyCode_Check(function->func_code) ? once_with_probes((PyCodeObject *)function->func_code, &here) : NULL;
    if (!made)
        return;
    function->func_version = 0; /* what calls were specialised on */
    Py_SETREF(function->func_code, Py_NewRef((PyObject *)made));
}

/* Functions of modules that were imported before; there are some to choose only where patterns are given. */
static void put_code_in_functions(void)
{
    PyObject *gc = covered_codes.choice.count ? PyImport_ImportModule("gc") : NULL;
    PyObject *objects = gc ? PyObject_CallMethod(gc, "get_objects", NULL) : NULL;
    for (Py_ssize_t index = 0; objects && index < PyList_GET_SIZE(objects); index++)
        if (PyFunction_Check(PyList_GET_ITEM(objects, index)))
            put_code_in_function(PyList_GET_ITEM(objects, index));
    Py_XDECREF(objects);
    Py_XDECREF(gc);
    PyErr_Clear();
}

static bool has_main_begun(void)
{
    frame *here = frame_innermost(running_state()), *outermost = here;
    for (; here; here = frame_outer(here))
        outermost = here;
    return outermost && (is_named(module_of(outermost), "__main__") || is_named(module_of(outermost), "runpy"));
}

const char *coverage_events_begin(void)
{
    if (!coverage.probes || coverage.contexts || coverage.branches)
        return coverage_trace_begin();
    if (!probes_begin())
        return "no room for probes";
    const char *why = expecting_begin();
    if (why) {
        probes_end();
        return why;
    }
    are_probes_on = true;
    put_code_in_functions();
    if (!has_main_begun())
        expect_main();
    return NULL;
}

const char *coverage_events_end(void)
{
    if (!are_probes_on)
        return coverage_trace_end();
    are_probes_on = false;
    expecting_end();
    probes_end();
    return coverage_is_rest_traced() ? coverage_trace_end() : NULL;
}

#endif
