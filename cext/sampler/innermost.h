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
