/* A filter of system calls (seccomp(2)) may answer one that the program itself never makes by a signal that kills. */
#pragma once

#include <stdbool.h>

/* Has this process one, as far as the kernel tells? */
bool calls_are_filtered(void);
