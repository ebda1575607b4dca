/* What the task or the greenlet is called that a thread of a sampled process runs. */
#pragma once

#include "sampler/stacks.h"

/* As the program said (asyncio.create_task(…, name=…)), else as the function of the outermost coroutine, or of the outermost
   frame of a greenlet. A number in sampled_strings; 0 if it runs no task. It is looked up after the stack was read: if the task has
   given way to another one since, it is called what it was called the last time. */
uint32_t task_name(struct sampled_process *process, uint64_t state, uint32_t greenlet, const struct found_stack *stack);
