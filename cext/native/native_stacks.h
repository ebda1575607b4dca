/* The stacks of native calls: the library that makes one, or the functions that led to it, before the line of Python. */
#pragma once

#include <stdint.h>

#include "core/threads.h"
#include "native/native_host.h"

/* The number of the stack of a call of the calling thread, which is made from `outer`; that itself if nothing is known
   of the code. */
uint32_t native_stack_of(struct thread *thread, struct native_origin from, uint32_t outer);
