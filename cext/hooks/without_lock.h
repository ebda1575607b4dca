/* Whether a call is recorded that is made without the interpreter's lock, or may be: what is asked here allocates nothing,
   and does not wait. */
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

/* Are calls of that number recorded on the thread now? Rules by places are for calls whose places are known before they are
   made: this one passes with the call that it is made in. */
bool is_recorded_now(const struct thread *thread, uint32_t intrinsic);
