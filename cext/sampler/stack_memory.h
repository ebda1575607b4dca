/* What the interpreter knows of a thread, and the memory of the thread's Python frames, read by one system call: between two, a
   thread calls several functions, and the frames would be others than those that it was in. While one is made, it calls some as
   well; so what changes most is read before and after the frames. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "core/interpreter_layout.h"

enum { STATE_BYTES_AT_MOST = 1024, CHUNK_BYTES_AT_MOST = 16 * 1024, BESIDE_AT_MOST = 16, BESIDE_BYTES_AT_MOST = 512 };

/* What a stack needs from elsewhere: first frames of generators and those on the C stack, then heads of code objects. */
struct beside {
    uint64_t address[BESIDE_AT_MOST];
    size_t bytes[BESIDE_AT_MOST];
    unsigned count, frames;
    bool has_innermost; /* the first of these frames was the innermost one of its stack */
};

/* Where all that was when it was read last: it is mostly there again. */
struct stack_place {
    uint64_t step, chunk, begin, end;
    struct beside beside;
};

struct stack_memory {
    char state[STATE_BYTES_AT_MOST];
    uint64_t innermost, innermost_after; /* the address of the innermost frame before the frames were read, and after; 0: none */
    bool is_late; /* it was read after the frames */
    uint64_t chunk_address;
    size_t chunk_bytes; /* 0: frames are read one by one */
    size_t used_bytes;  /* up to the end of the innermost frame */
    char chunk[CHUNK_BYTES_AT_MOST];
    struct beside beside; /* what of that was read by the same call */
    char beside_memory[BESIDE_AT_MOST][BESIDE_BYTES_AT_MOST];
};

/* Of the thread with that state; false if it cannot be read, or is elsewhere each time. */
bool stack_memory_read(pid_t pid, const struct interpreter_layout *layout, uint64_t state, struct stack_place *known,
                       struct stack_memory *into);

/* The frame at the address, or NULL if it is not in the memory that was read; and the address of its code. */
const char *stack_memory_frame(const struct stack_memory *memory, const struct interpreter_layout *layout, uint64_t address);
uint64_t frame_code_of(const struct interpreter_layout *layout, const char *frame);

/* Note what may be read by the same call the next time; what there is no room for is left out. A frame is noted before all else. */
void beside_add_frame(struct beside *beside, uint64_t address, size_t bytes);
void beside_add(struct beside *beside, uint64_t address, size_t bytes);

/* Also keep a few frames of the last time, as they may be there again. The innermost one comes first, as it changes most. */
void beside_keep(struct beside *last, const struct beside *now);

/* What was read by the same call, or NULL. */
const char *stack_memory_beside(const struct stack_memory *memory, uint64_t address, size_t bytes);
