/* What the interpreter knows of a thread, and the memory of the thread's Python frames, read by one system call: between two, a
   thread calls several functions, and the frames would be others than those that it was in. While one is made, it calls some as
   well; so what changes most is read before and after the frames: which is the innermost one, and the frames of generators. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "core/interpreter_layout.h"
#include "sampler/beside.h"

enum { STATE_BYTES_AT_MOST = 1024, CHUNK_BYTES_AT_MOST = 16 * 1024, FRAME_BYTES_AT_MOST = 256, STEPS_AT_MOST = 3 };

/* Up to CPython 3.12 C code that calls Python code has a place of its own, a step, for its innermost frame. These are the last ones
   of a thread, the newest first. */
struct steps {
    uint64_t address[STEPS_AT_MOST];
    unsigned age[STEPS_AT_MOST]; /* samples since the thread was in it */
    unsigned count;
};

/* Where all that was when it was read last: it is mostly there again. */
struct stack_place {
    struct steps steps;
    uint64_t chunk, begin, end;
    struct beside beside;
};

struct stack_memory {
    char state[STATE_BYTES_AT_MOST];
    uint64_t innermost, innermost_after; /* the innermost frame's address before the frames were read, and after; 0: unknown or none */
    bool is_late; /* both were read after the frames */
    uint64_t chunk_address;
    size_t chunk_bytes; /* 0: frames are read one by one */
    size_t used_bytes;  /* up to the end of the innermost frame */
    char chunk[CHUNK_BYTES_AT_MOST];
    struct beside beside; /* what of that was read by the same call */
    char beside_memory[BESIDE_AT_MOST][BESIDE_BYTES_AT_MOST];
    bool is_read_twice;   /* the first FRAMES_KEPT of these were also read before the chunk */
    char frames_before[FRAMES_KEPT][FRAME_BYTES_AT_MOST]; /* the first of them, as they were before the chunk was read */
    char states_before[FRAMES_KEPT], states[FRAMES_KEPT]; /* what their generators did, then and after */
};

/* Of the thread with that state; false if it cannot be read, or is elsewhere each time. */
bool stack_memory_read(pid_t pid, const struct interpreter_layout *layout, uint64_t state, struct stack_place *known,
                       struct stack_memory *into);

/* The frame at the address, or NULL if it is not in the memory that was read; and the address of its code. */
const char *stack_memory_frame(const struct stack_memory *memory, const struct interpreter_layout *layout, uint64_t address);
uint64_t frame_code_of(const struct interpreter_layout *layout, const char *frame);

/* What was read by the same call, after the frames in the chunk or before them; or NULL. */
const char *stack_memory_beside(const struct stack_memory *memory, uint64_t address, size_t bytes);
const char *stack_memory_before(const struct stack_memory *memory, uint64_t address);

/* The state (8 bits) of the generator that has this frame, before or after; or NULL. */
const char *stack_memory_state(const struct stack_memory *memory, bool is_before, uint64_t address);
