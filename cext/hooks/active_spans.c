#include "hooks/active_spans.h"

#include <stdbool.h>
#include <string.h>

#include "core/trace_contexts.h"
#include "cpython/attributes.h"

static bool are_expected;

enum { TRACE, SPAN, REMOTE, FIELDS_AT_LEAST }; /* of OpenTelemetry's SpanContext, a tuple */
enum { HALF_BITS = 64 };

/* Paths of one attribute. */
static PyObject *current_context, *span_context, *trace_id, *span_id;

static bool make_path(PyObject **path, const char *name)
{
    *path = *path ? *path : Py_BuildValue("(N)", PyUnicode_InternFromString(name));
    return *path;
}

int active_spans_begin(void)
{
    bool all = make_path(&current_context, "_current_context") && make_path(&span_context, "_context") &&
               make_path(&trace_id, "trace_id") && make_path(&span_id, "span_id");
    return all ? 0 : -1;
}

void expect_active_spans(void)
{
    are_expected = true;
}

/* What a context variable has now; takes the reference. A new one, or NULL. */
static PyObject *value_now(PyObject *variable)
{
    PyObject *value = NULL;
    if (variable && PyContextVar_CheckExact(variable) && PyContextVar_Get(variable, NULL, &value) < 0)
        PyErr_Clear();
    Py_XDECREF(variable);
    return value;
}

/* What is at a path from an object; takes the reference. A new one, or NULL. */
static PyObject *taken_at(PyObject *object, PyObject *path)
{
    PyObject *found = object ? attribute_at(object, path) : NULL;
    Py_XDECREF(object);
    return found;
}

/* Identities of at most 128 bits; false if they are no numbers, or 0. */
static bool read_identities(PyObject *trace, PyObject *span, struct trace_context *context)
{
    if (!trace || !span || !PyLong_CheckExact(trace) || !PyLong_CheckExact(span))
        return false;
    PyObject *shift = PyLong_FromLong(HALF_BITS), *high = shift ? PyNumber_Rshift(trace, shift) : NULL;
    context->high = high ? PyLong_AsUnsignedLongLongMask(high) : 0;
    context->low = PyLong_AsUnsignedLongLongMask(trace);
    context->parent = PyLong_AsUnsignedLongLongMask(span);
    Py_XDECREF(shift);
    Py_XDECREF(high);
    return (context->high || context->low) && context->parent;
}

/* Its context holds the span under a key of its own. A span of another program is a parent only. */
static bool read_opentelemetry(struct trace_context *context)
{
    PyObject *values = value_now(taken_at(entry_of_module("opentelemetry.context", "_RUNTIME_CONTEXT"), current_context));
    PyObject *key = entry_of_module("opentelemetry.trace.propagation", "_SPAN_KEY");
    PyObject *span = key && values && PyDict_Check(values) ? entry_at(values, key) : NULL;
    PyObject *fields = taken_at(span, span_context);
    bool is_whole = fields && PyTuple_Check(fields) && PyTuple_GET_SIZE(fields) >= FIELDS_AT_LEAST;
    bool is_own = is_whole && PyTuple_GET_ITEM(fields, REMOTE) == Py_False;
    *context = (struct trace_context){.flags = SPAN_OF_OPENTELEMETRY};
    bool found = is_own && read_identities(PyTuple_GET_ITEM(fields, TRACE), PyTuple_GET_ITEM(fields, SPAN), context);
    Py_XDECREF(fields);
    Py_XDECREF(key);
    Py_XDECREF(values);
    return found;
}

/* What is active may be a span, or the context of another program's. */
static bool read_ddtrace(struct trace_context *context)
{
    PyObject *active = value_now(entry_of_module("ddtrace._trace.provider", "_DD_CONTEXTVAR"));
    bool is_span = active && strcmp(Py_TYPE(active)->tp_name, "Span") == 0;
    PyObject *trace = is_span ? attribute_at(active, trace_id) : NULL;
    PyObject *span = is_span ? attribute_at(active, span_id) : NULL;
    *context = (struct trace_context){.flags = SPAN_OF_DDTRACE};
    bool found = read_identities(trace, span, context);
    Py_XDECREF(trace);
    Py_XDECREF(span);
    Py_XDECREF(active);
    return found;
}

void note_active_spans(struct thread *thread)
{
    struct trace_context context;
    if (!are_expected || !thread_records(thread))
        return;
    struct raised raised = raised_keep();
    if (read_opentelemetry(&context))
        trace_context_note_span(thread, &context);
    if (read_ddtrace(&context))
        trace_context_note_span(thread, &context);
    raised_restore(raised);
}
