#define _GNU_SOURCE
#include "core/readable.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "core/call_filter.h"
#include "core/own_thread.h"

enum { LEAST_PAGE_BYTES = 4096, KNOWN_PAGES = 16 };

/* Pages that were found readable. */
struct pages {
    uintptr_t known[KNOWN_PAGES];
    bool is_refused; /* the kernel does not look */
};

/* One that the program sets itself ends the recording (program/program_children.c). */
static bool may_ask(void)
{
    static uint32_t known; /* 1: no, 2: yes */
    uint32_t may = __atomic_load_n(&known, __ATOMIC_RELAXED);
    if (!may) {
        may = calls_are_filtered() ? 1 : 2;
        __atomic_store_n(&known, may, __ATOMIC_RELAXED);
    }
    return may == 2;
}

static bool is_readable_page(struct pages *pages, const void *place)
{
    uintptr_t page = (uintptr_t)place / LEAST_PAGE_BYTES, *known = &pages->known[page % KNOWN_PAGES];
    char byte;
    struct iovec here = {&byte, 1}, there = {(void *)(uintptr_t)place, 1};
    if (!page)
        return false;
    if (*known == page)
        return true;
    bool may = may_ask(), is_readable = may && process_vm_readv(own_thread(), &here, 1, &there, 1, 0) == 1;
    pages->is_refused |= !may || (!is_readable && errno != EFAULT);
    *known = is_readable ? page : 0;
    return is_readable;
}

static size_t left_in_page(const void *place)
{
    return LEAST_PAGE_BYTES - (uintptr_t)place % LEAST_PAGE_BYTES;
}

/* Its length, at most `most`; -1 where it cannot be read. */
static long length_of(struct pages *pages, const char *text, size_t most)
{
    for (size_t length = 0; length < most;) {
        size_t left = left_in_page(text + length);
        if (!is_readable_page(pages, text + length))
            return -1;
        size_t found = strnlen(text + length, left);
        length += found;
        if (found < left)
            return (long)(length < most ? length : most);
    }
    return (long)most;
}

long readable_length(const char *text, size_t most)
{
    struct pages pages = {.is_refused = false};
    return length_of(&pages, text, most);
}

bool is_readable_text(const char *text)
{
    struct pages pages = {.is_refused = false};
    return length_of(&pages, text, SIZE_MAX) >= 0 || pages.is_refused;
}

bool readable_copy(void *to, const void *from, size_t bytes)
{
    struct iovec here = {to, bytes}, there = {(void *)(uintptr_t)from, bytes};
    return may_ask() && process_vm_readv(own_thread(), &here, 1, &there, 1, 0) == (ssize_t)bytes;
}

/* Both ends of an entry, which may lie across the end of a page. */
static bool is_readable_entry(struct pages *pages, const char *const *entry)
{
    return is_readable_page(pages, entry) && is_readable_page(pages, (const char *)(entry + 1) - 1);
}

bool is_readable_list(const char *const *list)
{
    struct pages pages = {.is_refused = false};
    while (is_readable_entry(&pages, list)) {
        if (!*list)
            return true;
        if (length_of(&pages, *list++, SIZE_MAX) < 0)
            break;
    }
    return pages.is_refused;
}
