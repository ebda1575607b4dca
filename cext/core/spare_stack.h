/* Memory of our own for the start of a program, with a stack in it: the caller's stack may be small, and a child of vfork(2) may
   not allocate. What runs on that stack calls C alone, because Python looks where the stack is. */
#pragma once

#include <stdbool.h>

#include "core/visible.h"

enum { SPARE_BYTES = 256 * 1024, SPARE_STACK_BYTES = 128 * 1024 };

/* It begins with SPARE_BYTES - SPARE_STACK_BYTES for the caller's use, all zero at first; the stack follows. NULL if there is none. A child in
   its parent's memory (vfork) gets what the thread keeps for that, because it leaves it behind. errno stays as it is. */
VISIBLE void *spare_take(void);
VISIBLE void spare_release(void *memory);

/* Call `does` on the stack in that memory. */
VISIBLE void spare_run(void *memory, void (*does)(void *), void *about);

/* The three in one; without memory it is called on the caller's stack. */
VISIBLE void spare_call(void (*does)(void *), void *about);

/* The thread has children that run beside it in its memory: none of them is given any. */
VISIBLE void spare_is_shared(void);
