/* Which generators and coroutines a thread ran while the memory of its frames was read. They keep their frames elsewhere, and these
   are read shortly before that memory and shortly after. */
#pragma once

#include "sampler/innermost.h"

/* Copies of frames that are elsewhere. */
enum copy { COPY_BEFORE, COPY_AFTER };

/* The frame at the address, in that copy, or else as it is now; NULL if it cannot be read. */
const char *frame_elsewhere(const struct sampled_process *process, const struct stack_memory *memory, enum copy copy,
                            uint64_t address, char into[FRAME_BYTES_AT_MOST]);

uint8_t frame_owner_of(const struct interpreter_layout *layout, const char *frame);

/* The address of the frame around the one at `address`. `inner` is the address of the next frame inside it, or 0. A frame on the
   C stack may be overwritten, wholly or in part, once it ends; then you get the address that earlier samples noted. */
uint64_t frame_around(const struct sampled_process *process, const struct stack_memory *memory, uint64_t address,
                      const char *frame, uint64_t inner);

/* The innermost running generator's frame (0: none), and which copy to read. */
struct running_generators {
    uint64_t innermost, root; /* and the frame that resumed the outermost of them */
    enum copy copy;
    bool are_unknown; /* a generator may have run, but was not read in time */
};
struct running_generators generators_within(struct sampled_process *process, const struct stack_memory *memory,
                                            struct innermost innermost);
