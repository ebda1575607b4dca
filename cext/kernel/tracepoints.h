/* The kernel's tracepoints for system calls. */
#pragma once

#include <stdint.h>

/* Their numbers. */
struct tracepoints {
    uint64_t enter, exit;
};

/* Find the kernel's tracepoints for system calls. Returns 0 or an errno. */
int tracepoints_find(struct tracepoints *found);
