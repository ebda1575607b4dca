/* The stacks of native calls: the line of Python, and inside it the library that makes the call, or the functions that led to
   it. */
#pragma once

#include <stdint.h>

#include "core/threads.h"
#include "native/native_host.h"

/* The number of the stack of a call that the calling thread makes from `outer`; `outer` itself if the code is unknown. */
uint32_t native_stack_of(struct thread *thread, struct native_origin from, uint32_t outer);
