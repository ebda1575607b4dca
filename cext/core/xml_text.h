/* Text of XML elements, put together in memory that grows. Once an allocation has failed, the text is empty and stays
   so. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "core/visible.h"

/* It begins as all zeros. `text` has no terminating zero. */
struct xml_text {
    char *text;
    size_t bytes, room;
    bool failed;
};

/* Put a piece that is XML already. */
VISIBLE void xml_put_bytes(struct xml_text *out, const char *piece, size_t bytes);

/* Inline: the compiler knows the length of a literal. */
static inline void xml_put(struct xml_text *out, const char *piece)
{
    xml_put_bytes(out, piece, strlen(piece));
}

/* Put `before`, which is XML already, and the number in decimal. */
VISIBLE void xml_put_number(struct xml_text *out, const char *before, unsigned long number);

/* Put text, escaped for use between tags and in attributes. Characters that XML does not allow, invisible ones and
   invalid UTF-8 become question marks. */
VISIBLE void xml_put_escaped(struct xml_text *out, const char *text, size_t bytes);

VISIBLE void xml_free(struct xml_text *out);
