#include "hooks/trace_headers.h"

#include <string.h>
#include <strings.h>

#include "core/trace_contexts.h"
#include "core/trace_state.h"
#include "cpython/attributes.h"
#include "cpython/version.h"
#include "hooks/active_spans.h"

enum { HEADERS_AT_MOST = 256, STATES_BYTES = 1 << 16 };

/* A header, and its names: in a WSGI environment, in waitress, in tornado, in a message of celery. */
enum { KEYS = 4, KEY_OF_LINES = 2 };
struct header {
    const char *const words[KEYS];
    bool may_be_several; /* lines, which are one list */
    PyObject *keys[KEYS];
};
static struct header trace_parent = {.words = {"HTTP_TRACEPARENT", "TRACEPARENT", "Traceparent", "traceparent"}};
static struct header trace_state = {.words = {"HTTP_TRACESTATE", "TRACESTATE", "Tracestate", "tracestate"}, .may_be_several = true};
static PyObject *key_of_headers;

static bool make_keys(struct header *header)
{
    for (int place = 0; place < KEYS; place++)
        if (!header->keys[place] && !(header->keys[place] = PyUnicode_InternFromString(header->words[place])))
            return false;
    return true;
}

int trace_headers_begin(void)
{
    key_of_headers = key_of_headers ? key_of_headers : PyUnicode_InternFromString("headers");
    return key_of_headers && make_keys(&trace_parent) && make_keys(&trace_state) ? 0 : -1;
}

static bool is_header(PyObject *name, const struct header *header)
{
    Py_ssize_t bytes;
    const char *text = bytes_of_text(name, &bytes), *word = header->words[KEYS - 1];
    return text && (size_t)bytes == strlen(word) && strncasecmp(text, word, strlen(word)) == 0;
}

/* The value in a name and a value; borrowed, or NULL if the name is another. */
static PyObject *value_of(PyObject *pair, const struct header *header)
{
    /* A list may change while it is looked at, where threads run at once. */
    bool is_kept = PyTuple_CheckExact(pair) || (!IS_FREE_THREADED && PyList_CheckExact(pair));
    bool is_pair = is_kept && PySequence_Fast_GET_SIZE(pair) == 2;
    bool is_it = is_pair && is_header(PySequence_Fast_GET_ITEM(pair, 0), header);
    return is_it ? PySequence_Fast_GET_ITEM(pair, 1) : NULL;
}

/* Two lines of a header in one, with a comma between them; takes the first. NULL if they are no text, or too much. */
static PyObject *joined(PyObject *first, PyObject *second)
{
    Py_ssize_t bytes, more;
    const char *text = bytes_of_text(first, &bytes), *next = bytes_of_text(second, &more);
    bool fits = text && next && bytes < STATES_BYTES && more < STATES_BYTES;
    PyObject *both = fits ? PyBytes_FromStringAndSize(NULL, bytes + 1 + more) : NULL;
    if (both) {
        memcpy(PyBytes_AS_STRING(both), text, (size_t)bytes);
        PyBytes_AS_STRING(both)[bytes] = ',';
        memcpy(PyBytes_AS_STRING(both) + bytes + 1, next, (size_t)more);
    }
    PyErr_Clear();
    Py_DECREF(first);
    return both;
}

/* The header in names and values; a new reference, or NULL. One that is there twice is not valid, or a list. */
static PyObject *header_among(PyObject *pairs, const struct header *header)
{
    PyObject *items = items_as_now(pairs), *found = NULL;
    Py_ssize_t count = items ? PySequence_Fast_GET_SIZE(items) : 0;
    bool is_valid = true;
    for (Py_ssize_t place = 0; is_valid && place < count && place < HEADERS_AT_MOST; place++) {
        PyObject *value = value_of(PySequence_Fast_GET_ITEM(items, place), header);
        if (value && !found)
            found = Py_NewRef(value);
        else if (value)
            is_valid = header->may_be_several && (found = joined(found, value));
    }
    Py_XDECREF(items);
    if (!is_valid)
        Py_CLEAR(found);
    return found;
}

/* The only line of a list of lines, as tornado keeps them; NULL if there are several. Takes over the list's reference. */
static PyObject *only_line(PyObject *lines)
{
    if (!PyList_CheckExact(lines))
        return lines;
    bool is_one = !IS_FREE_THREADED && PyList_GET_SIZE(lines) == 1; /* else another thread may change the list meanwhile */
    PyObject *line = is_one ? Py_NewRef(PyList_GET_ITEM(lines, 0)) : NULL;
    Py_DECREF(lines);
    return line;
}

static PyObject *entry_of(PyObject *headers, const struct header *header)
{
    PyObject *found = NULL;
    int place = 0;
    while (!found && place < KEYS)
        found = entry_at(headers, header->keys[place++]);
    return found && place == KEY_OF_LINES + 1 ? only_line(found) : found;
}

/* The header in an environment, a scope, a message, or a list; a new reference, or NULL. */
static PyObject *header_in(PyObject *headers, const struct header *header, bool is_outermost)
{
    if (PyList_CheckExact(headers) || PyTuple_CheckExact(headers))
        return header_among(headers, header);
    if (!PyDict_CheckExact(headers))
        return NULL;
    PyObject *found = entry_of(headers, header);
    PyObject *inner = found || !is_outermost ? NULL : entry_at(headers, key_of_headers);
    if (inner)
        found = header_in(inner, header, false);
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

/* A header of the request that the call serves; a new reference, or NULL. */
static PyObject *header_of(const struct call *call, const struct header *header)
{
    PyObject *ways = call->slot->headers, *caller = caller_of(call);
    PyObject *headers = !caller ? NULL : ways ? attribute_at(caller, PyTuple_GET_ITEM(ways, 0)) : Py_NewRef(caller);
    PyObject *found = headers ? header_in(headers, header, true) : NULL;
    Py_XDECREF(headers);
    return found;
}

bool read_context(const struct call *call, struct trace_context *context)
{
    struct raised raised = raised_keep();
    PyObject *found = header_of(call, &trace_parent);
    Py_ssize_t bytes;
    const char *text = bytes_of_text(found, &bytes);
    bool is_valid = text && trace_context_parse(text, (size_t)bytes, context);
    Py_XDECREF(found);
    raised_restore(raised);
    return is_valid;
}

PyObject *read_state(const struct call *call)
{
    if (!trace_states_are_kept())
        return NULL;
    struct raised raised = raised_keep();
    char kept[TRACE_STATE_BYTES + 1];
    PyObject *found = header_of(call, &trace_state), *state = NULL;
    Py_ssize_t bytes;
    const char *text = bytes_of_text(found, &bytes);
    size_t length = text ? trace_state_keep(text, (size_t)bytes, kept) : 0;
    if (length)
        state = PyBytes_FromStringAndSize(kept, (Py_ssize_t)length);
    Py_XDECREF(found);
    raised_restore(raised);
    return state;
}

void keep_context(const struct call *call, const struct span *serving)
{
    struct trace_context context;
    if (read_context(call, &context)) {
        PyObject *state = read_state(call);
        const char *text = state ? PyBytes_AS_STRING(state) : NULL;
        trace_context_begin(serving->thread, serving->index, serving->call, &context, text);
        Py_XDECREF(state);
    }
    note_active_spans(serving->thread);
}
