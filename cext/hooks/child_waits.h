/* The functions by which the interpreter waits for children, exchanged in its import table for functions that ask
   the kernel, with the same system call, what the child used. They wait exactly as requested and reap nothing else; if
   several threads wait at once, each learns about its own child. If they cannot be exchanged, or are not the C
   library's own, a child's use is the growth of the sum over all children. */
#pragma once

#include <stdbool.h>

/* From the first call on. */
void child_waits_begin(void);

/* Restore what was exchanged. False if somebody else has replaced ours since. */
bool child_waits_end(void);
