#include "hooks/trace_headers.h"

#include <string.h>
#include <strings.h>

#include "core/trace_contexts.h"
#include "cpython/attributes.h"
#include "cpython/version.h"
#include "hooks/active_spans.h"

enum { HEADERS_AT_MOST = 256 };

static const char header[] = "traceparent";

/* The names of the header: of a WSGI environment, as waitress keeps it, of a message of celery. */
enum { KEYS = 3 };
static PyObject *keys[KEYS], *key_of_headers;

int trace_headers_begin(void)
{
    static const char *const words[KEYS] = {"HTTP_TRACEPARENT", "TRACEPARENT", "traceparent"};
    for (int place = 0; place < KEYS; place++)
        if (!keys[place] && !(keys[place] = PyUnicode_InternFromString(words[place])))
            return -1;
    key_of_headers = key_of_headers ? key_of_headers : PyUnicode_InternFromString("headers");
    return key_of_headers ? 0 : -1;
}

static bool is_header(PyObject *name)
{
    Py_ssize_t bytes;
    const char *text = bytes_of_text(name, &bytes);
    return text && bytes == sizeof header - 1 && strncasecmp(text, header, sizeof header - 1) == 0;
}

/* The value in a name and a value; borrowed, or NULL if the name is another. */
static PyObject *value_of(PyObject *pair)
{
    /* A list may change while it is looked at, where threads run at once. */
    bool is_kept = PyTuple_CheckExact(pair) || (!IS_FREE_THREADED && PyList_CheckExact(pair));
    bool is_pair = is_kept && PySequence_Fast_GET_SIZE(pair) == 2;
    return is_pair && is_header(PySequence_Fast_GET_ITEM(pair, 0)) ? PySequence_Fast_GET_ITEM(pair, 1) : NULL;
}

/* The header in names and values; a new reference, or NULL. One that is there twice is not valid. */
static PyObject *header_among(PyObject *pairs)
{
    PyObject *items = items_as_now(pairs), *found = NULL;
    Py_ssize_t count = items ? PySequence_Fast_GET_SIZE(items) : 0, times = 0;
    for (Py_ssize_t place = 0; place < count && place < HEADERS_AT_MOST; place++) {
        PyObject *value = value_of(PySequence_Fast_GET_ITEM(items, place));
        found = value ? value : found;
        times += value != NULL;
    }
    found = times == 1 ? Py_NewRef(found) : NULL;
    Py_XDECREF(items);
    return found;
}

/* The header in an environment, a scope, a message, or a list; a new reference, or NULL. */
static PyObject *header_in(PyObject *headers, bool is_outermost)
{
    PyObject *found = NULL;
    if (PyList_CheckExact(headers) || PyTuple_CheckExact(headers))
        return header_among(headers);
    if (!PyDict_CheckExact(headers))
        return NULL;
    for (int place = 0; !found && place < KEYS; place++)
        found = entry_at(headers, keys[place]);
    PyObject *inner = found || !is_outermost ? NULL : entry_at(headers, key_of_headers);
    if (inner)
        found = header_in(inner, false);
    Py_XDECREF(inner);
    return found;
}

/* What has the headers: the object, or an argument; borrowed, or NULL. */
static PyObject *caller_of(const struct call *call)
{
    const struct slot *slot = call->slot;
    if (slot->caller == CALLER_NOT)
        return NULL;
    if (slot->caller == SUBJECT_OWNER)
        return call->owner;
    return slot->caller == slot->subject ? subject_of(call) : argument_of(call, slot->caller);
}

bool read_context(const struct call *call, struct trace_context *context)
{
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    PyObject *ways = call->slot->headers, *caller = caller_of(call);
    PyObject *headers = !caller ? NULL : ways ? attribute_at(caller, PyTuple_GET_ITEM(ways, 0)) : Py_NewRef(caller);
    PyObject *found = headers ? header_in(headers, true) : NULL;
    Py_ssize_t bytes;
    const char *text = bytes_of_text(found, &bytes);
    bool is_valid = text && trace_context_parse(text, (size_t)bytes, context);
    Py_XDECREF(found);
    Py_XDECREF(headers);
    PyErr_Restore(type, value, traceback);
    return is_valid;
}

void keep_context(const struct call *call, const struct span *serving)
{
    struct trace_context context;
    if (read_context(call, &context))
        trace_context_begin(serving->thread, serving->index, serving->call, &context);
    note_active_spans(serving->thread);
}
