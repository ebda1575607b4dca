#define _GNU_SOURCE
#include "collectors/readable_texts.h"

#include <errno.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "core/own_thread.h"

uintptr_t readable_pages[KNOWN_PAGES];

static void keep_page(uintptr_t address)
{
    uintptr_t page = address >> PAGE_BITS;
    readable_pages[page % KNOWN_PAGES] = page;
}

/* In two pieces where a page ends in between: of a piece all is copied or nothing. */
bool ask_whether_readable(const char *text)
{
    char copy[INTERPOSE_NAME_BYTES];
    uintptr_t begin = (uintptr_t)text, page_end = ((begin >> PAGE_BITS) + 1) << PAGE_BITS;
    size_t first = page_end - begin < sizeof copy ? page_end - begin : sizeof copy;
    struct iovec to = {copy, sizeof copy};
    struct iovec from[2] = {{(void *)begin, first}, {(void *)page_end, sizeof copy - first}};
    int saved = errno;
    ssize_t got = process_vm_readv(own_thread(), &to, 1, from, first < sizeof copy ? 2 : 1, 0);
    bool forbidden = got < 0 && errno != EFAULT;
    errno = saved;
    if (forbidden)
        return true;
    if (got < (ssize_t)first)
        return false;
    keep_page(begin);
    if (got == (ssize_t)sizeof copy)
        keep_page(begin + sizeof copy - 1);
    return got == (ssize_t)sizeof copy || memchr(copy, 0, first);
}
