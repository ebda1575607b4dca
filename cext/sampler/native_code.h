/* Which native function a thread of a sampled process executes: one of an extension module, or of a library that it uses.

   After each sample of a thread that runs, the kernel notes where the thread executes, and wakes the sampler, which looks
   at the thread's Python frames once more. If nothing in them has changed, the thread was in that native function when it
   was sampled. What runs for less than a tenth of a millisecond at a time is rarely told. */
#pragma once

#include "sampler/process.h"

/* Whether a sample with a stack of that mark can be asked together with those that wait: the thread has not had a
   processor since, or goes on as it did. */
bool native_code_is_same(const struct asked *asked, uint64_t mark);

/* The thread was sampled just now, with a stack of that mark; have the sample completed. False if that will not be done. */
bool native_code_ask(struct sampled_process *process, struct sampled_thread *thread, uint64_t mark, const struct taken *taken);

/* A note about the thread has woken the sampler. */
void native_code_tell(struct sampled_process *process, struct sampled_thread *thread);

void native_code_forget(struct native_code *native);
