/* The Python stack of a thread of another process, read while it runs. */
#pragma once

#include "sampler/process.h"

struct found_stack {
    uint32_t number; /* in sampled_stacks; 0: it runs no Python code; STACK_NOT_READ */
    uint64_t mark;   /* of the innermost frames and their variables: another when the thread has gone on; 0 if torn */
    bool torn;       /* it changed while it was read */
    uint64_t coroutine;           /* the outermost one that it runs, an address, or 0 */
    uint32_t coroutine_function;  /* what that one's function is called, a number in sampled_strings */
    uint32_t outermost_function;  /* the same of the outermost frame; 0 if that was not read */
};

struct found_stack stack_of(struct sampled_process *process, struct sampled_thread *thread);
