/* The recorded call that a thread of a sampled process is in, as its own recorder has it in the file `threads`. */
#pragma once

#include "sampler/process.h"

struct call_in_progress {
    uint32_t call, intrinsic; /* 0: it is in none */
    uint32_t greenlet;        /* not 0: it runs one */
    uint32_t lock_wait;       /* the wait for the interpreter lock that it is in, or 0 */
    bool begins;              /* the recorder begins the next call, and reads the clocks for it */
};

/* Also finds the number of the thread's record, where that is not known yet. */
struct call_in_progress call_of(struct sampled_process *process, struct sampled_thread *thread);

/* Is the thread one that is recorded, as its record says now? */
bool call_is_recorded(const struct sampled_process *process, const struct sampled_thread *thread);
