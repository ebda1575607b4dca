/* Whether a call that is made without the interpreter lock, or may be, is recorded: nothing here allocates or
   waits. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "core/recorder.h"

/* The calling thread, where it is known to the recorder: to get to know it takes the interpreter's lock. */
static inline struct thread *known_thread(void)
{
    struct thread *thread = current_thread;
    return thread && __atomic_load_n(&thread->recording, __ATOMIC_RELAXED) ? thread : NULL;
}

/* Whether calls with that number are recorded on the thread now. Rules by call site apply to calls with sites that
   are known before the call: this one passes together with the call around it. */
bool is_recorded_now(const struct thread *thread, uint32_t intrinsic);
