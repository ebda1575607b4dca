# Trace contexts (W3C Trace Context): as text, and of the call in progress.

cdef extern from "core/trace_context.h":
    enum:
        TRACE_PARENT_BYTES
    struct trace_context:
        uint64_t high
        uint64_t low
        uint64_t parent
        uint32_t flags
    bint trace_context_parse(const char *, size_t, trace_context *)
    void trace_context_write(const trace_context *, char *)

cdef extern from "core/trace_contexts.h":
    void trace_context_choose_outer(const trace_context *, const char *)
    void trace_context_lasts(uint32_t, uint32_t)
    bint trace_context_here(const c_thread *, trace_context *, const char **)

cdef extern from "core/trace_identities.h":
    struct trace_identity:
        uint64_t high
        uint64_t low
    uint64_t identity_seed(uint32_t, uint64_t, uint64_t)
    trace_identity identity_of_trace(uint64_t)
    uint64_t identity_of_span(uint64_t, uint32_t, uint32_t)


cdef str text_of_context(const trace_context *context):
    cdef char[TRACE_PARENT_BYTES + 1] text
    trace_context_write(context, text)
    return (<bytes>text[:TRACE_PARENT_BYTES]).decode("ascii")


def trace_parent(bytes text):
    """A valid `traceparent` as version 00 has it; empty if it is not valid."""
    cdef trace_context context
    return text_of_context(&context) if trace_context_parse(text, len(text), &context) else ""


def choose_trace_parent(bytes text, bytes state):
    """The same, for the trace in which the program was started: the experiment belongs to it. `state` is its
    `tracestate`, or None where none are passed on."""
    cdef trace_context context
    cdef bint is_valid = trace_context_parse(text, len(text), &context)
    cdef const char *given = NULL
    if state is not None:
        given = state if is_valid else b""
    trace_context_choose_outer(&context if is_valid else NULL, given)
    return text_of_context(&context) if is_valid else ""


def trace_context_lasts_with(uint32_t sending, uint32_t lasting):
    """A request that a call with the number `sending` makes inside one with the number `lasting` is of the latter."""
    trace_context_lasts(sending, lasting)


def trace_context_of_request():
    """The `traceparent` for a request that is made now, empty if it gets none, and its `tracestate`, if any."""
    cdef trace_context context
    cdef const char *state = NULL
    cdef c_thread *thread = recording() if recorded_state() != NULL else NULL
    if thread == NULL or not trace_context_here(thread, &context, &state):
        return "", ""
    return text_of_context(&context), "" if state == NULL else (<bytes>state).decode("ascii")


def identities(uint32_t pid, uint64_t start_ns, uint64_t time_ns, uint32_t thread, uint32_t call):
    """The trace of an experiment whose founder that process is, and the span of one of its calls, as numbers."""
    cdef uint64_t seed = identity_seed(pid, start_ns, time_ns)
    cdef trace_identity trace = identity_of_trace(seed)
    return trace.high, trace.low, identity_of_span(seed, thread, call)
