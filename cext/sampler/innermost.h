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

/* Whether the frame at the address, and those around it up to one that C code has called, each wait for what they have called.
   From CPython 3.14 on, false: there such frames are known to be open. */
bool waits_below_c(struct sampled_process *process, const struct stack_memory *memory, uint64_t address);

/* Whether the frame at the address is in the memory, and the one of what it has called, at `inner`, follows it there. */
bool is_called_from(const struct sampled_process *process, const struct stack_memory *memory, uint64_t address, uint64_t inner);
