/* Which allocations are sampled. */
#pragma once

#include "heap/heap.h"

/* The calling thread goes on with other numbers: siblings, forked from one parent, draw differently. */
void heap_draw_otherwise(void);
