/* The functions by which the interpreter waits for children, exchanged in its import table for such as ask the kernel, with
   the same system call, what the child used.

   They wait for what they are told to and reap nothing else; of several threads that wait at once each learns of its own
   child. Where they cannot be exchanged, or are not the C library's own, children are told by what the sum of all grew by. */
#pragma once

#include <stdbool.h>

/* From the first call on. */
void child_waits_begin(void);

/* Put back what was exchanged. False where somebody else has put his own upon ours. */
bool child_waits_end(void);
