#include "core/trace_context.h"

#include <inttypes.h>
#include <stdio.h>

enum { LATEST_VERSION = 0xfe };

/* The number that a few lower-case hexadecimal digits are; false if one is not. */
static bool read_digits(const char *text, size_t digits, uint64_t *number)
{
    *number = 0;
    for (size_t place = 0; place < digits; place++) {
        char letter = text[place];
        bool is_digit = letter >= '0' && letter <= '9', is_letter = letter >= 'a' && letter <= 'f';
        if (!is_digit && !is_letter)
            return false;
        *number = *number << 4 | (uint64_t)(is_digit ? letter - '0' : letter - 'a' + 10);
    }
    return true;
}

static bool has_dashes(const char *text)
{
    return text[2] == '-' && text[35] == '-' && text[52] == '-';
}

/* Nothing may follow version 00; of later ones anything behind another dash. */
static bool may_end(const char *text, size_t bytes, uint64_t version)
{
    return bytes == TRACE_PARENT_BYTES || (version && text[TRACE_PARENT_BYTES] == '-');
}

bool trace_context_parse(const char *text, size_t bytes, struct trace_context *context)
{
    uint64_t version, flags;
    if (bytes < TRACE_PARENT_BYTES || !has_dashes(text) || !read_digits(text, 2, &version))
        return false;
    if (version > LATEST_VERSION || !may_end(text, bytes, version))
        return false;
    if (!read_digits(text + 3, 16, &context->high) || !read_digits(text + 19, 16, &context->low))
        return false;
    if (!read_digits(text + 36, 16, &context->parent) || !read_digits(text + 53, 2, &flags))
        return false;
    context->flags = (uint32_t)(version ? flags & TRACE_SAMPLED : flags);
    return (context->high || context->low) && context->parent;
}

void trace_context_write(const struct trace_context *context, char text[TRACE_PARENT_BYTES + 1])
{
    snprintf(text, TRACE_PARENT_BYTES + 1, "00-%016" PRIx64 "%016" PRIx64 "-%016" PRIx64 "-%02x", context->high,
             context->low, context->parent, context->flags & 0xff);
}
