/* Whether a thread of another process goes on, as its memory shows. */
#pragma once

#include "sampler/process.h"

/* Whether the innermost frame of its Python code, where that was read last, or the C stack within it changes within that time. A thread
   that has no processor changes neither, nor does C code that works in registers for longer than we look. */
bool progress_is_seen(const struct sampled_process *process, const struct sampled_thread *thread, uint64_t for_ns);
