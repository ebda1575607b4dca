/* The context of W3C's Trace Context: in which trace a request was made, and below which span. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/visible.h"

struct trace_context {
    uint64_t high, low; /* the trace's identity; not both 0 */
    uint64_t parent;    /* the identity of the span that made the request; not 0 */
    uint32_t flags;
};

enum { TRACE_PARENT_BYTES = 55 }; /* without a zero behind them */

/* Flags: the request is sampled; those that have a meaning; and of another tracer's span, whose it is. */
enum { TRACE_SAMPLED = 1, TRACE_FLAGS = 3, SPAN_OF_OPENTELEMETRY = 256, SPAN_OF_DDTRACE = 512 };

/* Is the text a `traceparent`? Of a later version than 00 only what that has is taken. */
VISIBLE bool trace_context_parse(const char *text, size_t bytes, struct trace_context *context);

/* The same as text of version 00, with a zero behind it. */
VISIBLE void trace_context_write(const struct trace_context *context, char text[TRACE_PARENT_BYTES + 1]);

static inline bool is_same_context(const struct trace_context *one, const struct trace_context *other)
{
    return one->high == other->high && one->low == other->low && one->parent == other->parent;
}
