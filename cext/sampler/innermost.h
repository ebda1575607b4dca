/* Which Python frame of a thread was the innermost one while the memory of its frames was read. */
#pragma once

#include "sampler/process.h"

/* Its address, 0 if unknown, and whether it was not over for sure. Frames of generators are elsewhere: one may have been called from
   there, or from another one if this one may have been over. */
struct innermost {
    uint64_t address;
    bool is_open;
};
struct innermost innermost_frame(struct sampled_process *process, const struct stack_memory *memory,
                                 const struct last_frames *last);
