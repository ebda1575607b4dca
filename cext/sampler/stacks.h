/* The Python stack of a thread of another process, read while it runs. */
#pragma once

#include "sampler/process.h"

struct found_stack {
    uint32_t number; /* in sampled_stacks; 0: it runs no Python code, or it could not be read */
    bool torn;       /* it changed while it was read */
};

/* `state` is the address of what the interpreter knows of the thread. */
struct found_stack stack_of(struct sampled_process *process, uint64_t state);
