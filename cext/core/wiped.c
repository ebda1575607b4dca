#define _GNU_SOURCE
#include "core/wiped.h"

#include <errno.h>
#include <sys/mman.h>

enum { CHUNK_BYTES = 64 * 1024, LINE_BYTES = 64 };

static struct {
    char *bytes;
    size_t used;
} chunk = {.used = CHUNK_BYTES};

static int next_chunk(void)
{
    void *memory = mmap(NULL, CHUNK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        return errno;
    if (madvise(memory, CHUNK_BYTES, MADV_WIPEONFORK)) {
        int failed = errno;
        munmap(memory, CHUNK_BYTES);
        return failed;
    }
    chunk.bytes = memory;
    chunk.used = 0;
    return 0;
}

void *wiped_take(size_t bytes)
{
    bytes = (bytes + LINE_BYTES - 1) / LINE_BYTES * LINE_BYTES;
    int failed = bytes > CHUNK_BYTES ? ENOMEM : chunk.used + bytes > CHUNK_BYTES ? next_chunk() : 0;
    if (failed) {
        errno = failed;
        return NULL;
    }
    char *taken = chunk.bytes + chunk.used;
    chunk.used += bytes;
    return taken;
}

void wiped_begin_child(void)
{
    chunk.used = CHUNK_BYTES;
}
