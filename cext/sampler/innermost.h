/* Which Python frame of a thread was the innermost one while the memory of its frames was read. */
#pragma once

#include "sampler/stack_memory.h"

/* Its address, which may also be that of a frame elsewhere (of a generator); 0: it ran no Python code. */
uint64_t innermost_frame(pid_t pid, const struct interpreter_layout *layout, const struct stack_memory *memory);
