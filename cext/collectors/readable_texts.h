/* Texts that a collector in C gave: can they be read? A pointer that leads nowhere is to end the collector, and not the
   program. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "core/visible.h"
#include "interpose_collector.h"

enum { PAGE_BITS = 12, KNOWN_PAGES = 256 };

/* Pages that could be read once, by their numbers; there is no page 0. */
extern uintptr_t readable_pages[KNOWN_PAGES];

static inline bool is_known_page(uintptr_t address)
{
    uintptr_t page = address >> PAGE_BITS;
    return page && readable_pages[page % KNOWN_PAGES] == page;
}

/* The same by asking the kernel. True if that does not tell. */
bool ask_whether_readable(const char *text);

/* Whether it can be read up to its end, or as far as a name is read. */
static inline bool is_readable(const char *text)
{
    uintptr_t begin = (uintptr_t)text, last = begin + INTERPOSE_NAME_BYTES - 1;
    return LIKELY(is_known_page(begin) && is_known_page(last)) || ask_whether_readable(text);
}
