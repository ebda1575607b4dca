/* Which Python frame of a thread was the innermost one while the memory of its frames was read. */
#pragma once

#include "sampler/process.h"

/* Its address, 0 if unknown, and whether it was not over for sure. A generator's frame is elsewhere: it may have been called from
   there. */
struct innermost {
    uint64_t address;
    bool is_open;
};
struct innermost innermost_frame(struct sampled_process *process, const struct stack_memory *memory,
                                 const struct last_frames *last);

/* Whether it may have called a generator, which was called from the frame at `address`. */
bool innermost_calls(struct sampled_process *process, const struct stack_memory *memory, struct innermost innermost,
                     uint64_t address);
