/* A thread calls so deeply that its frames need a second chunk, and returns. Prints how many used bytes of the chunk are read
   at each step: before, deep, while the interpreter gives the second chunk back, and afterwards. The word says where that chunk is. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "sampler/stack_memory.h"

enum { CHUNK = 16 * 1024, SHALLOW = 9000, DEEP = 600, AFTER = 8000, FRAME = 80 };

struct thread {
    uint64_t chunk, top, limit, frame;
};

static struct interpreter_layout layout = {
    .thread_bytes = sizeof(struct thread),
    .thread_chunk = offsetof(struct thread, chunk),
    .thread_top = offsetof(struct thread, top),
    .thread_limit = offsetof(struct thread, limit),
    .thread_frame = offsetof(struct thread, frame),
    .frame_bytes = FRAME,
};

static void put(struct thread *thread, const char *chunk, unsigned used, const char *limit)
{
    *thread = (struct thread){(uintptr_t)chunk, (uintptr_t)chunk + used, (uintptr_t)limit, (uintptr_t)chunk + used - FRAME};
}

/* The bytes of the innermost frame are 1. */
static void look(struct thread *thread, struct stack_place *known)
{
    static struct stack_memory memory;
    static const char expected[FRAME] = {[0 ... FRAME - 1] = 1};
    bool is_read = stack_memory_read(getpid(), &layout, (uintptr_t)thread, known, &memory);
    const char *frame = is_read ? stack_memory_frame(&memory, &layout, thread->frame) : NULL;
    printf("%zu %d\n", is_read ? memory.used_bytes : 0, frame && !memcmp(frame, expected, FRAME));
}

int main(int count, char **words)
{
    struct thread thread;
    struct stack_place known = {.chunk = 0};
    bool is_below = count == 2 && !strcmp(words[1], "below");
    char *chunks = mmap(NULL, 3 * CHUNK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (chunks == MAP_FAILED)
        return 3;
    memset(chunks, 1, 3 * CHUNK);
    char *outer = chunks + CHUNK, *inner = is_below ? chunks : chunks + 2 * CHUNK;
    put(&thread, outer, SHALLOW, outer + CHUNK);
    look(&thread, &known);
    put(&thread, inner, DEEP, inner + CHUNK);
    look(&thread, &known);
    munmap(inner, CHUNK);
    put(&thread, outer, SHALLOW, inner + CHUNK);
    look(&thread, &known);
    put(&thread, outer, AFTER, outer + CHUNK);
    look(&thread, &known);
    put(&thread, outer, SHALLOW + 2 * FRAME, outer + CHUNK);
    look(&thread, &known);
    return 0;
}
