/* Which Python frame of a thread was the innermost one while the memory of its frames was read. */
#pragma once

#include "sampler/process.h"

/* Its address (0 if unknown), and whether it had certainly not ended. Generators keep their frames elsewhere: this frame may have
   called one. If it may have ended, another frame may be the caller. */
struct innermost {
    uint64_t address;
    bool is_open;
};
struct innermost innermost_frame(struct sampled_process *process, const struct stack_memory *memory,
                                 const struct last_frames *last);

/* Whether the frame at the address, and each frame around it up to one that C code has called, waits for something it has called.
   Always false from CPython 3.14 on: there such frames are known to be open. */
bool waits_below_c(struct sampled_process *process, const struct stack_memory *memory, uint64_t address);

/* Whether the frame at the address is in the memory, and `inner` is where the frame of a function that it calls begins. */
bool is_called_from(const struct sampled_process *process, const struct stack_memory *memory, uint64_t address, uint64_t inner);
