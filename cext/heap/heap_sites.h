/* What the stacks have allocated: a record for each, in a mapped file. The exclusive lock is held. */
#pragma once

#include "heap/heap.h"

/* Stacks with a record of their own. Tests set less. */
VISIBLE extern uint32_t heap_sites_most;

/* Forget all records; free the memory of earlier ones if it is this process's. False if there is no memory. */
bool heap_sites_begin(bool is_ours);

/* Create the file. 0 or the error's number. */
int heap_sites_create(void);

/* The record for allocations from `stack`. When heap_sites_most is reached, records give way that have nothing in use and had
   nothing in use at the last peak, the process's `peaks`. If none can give way, it is the record for all other stacks. */
struct heap_site *heap_site_of(uint32_t stack, uint64_t peaks);

/* The record for all other stacks. */
struct heap_site *heap_site_more(void);
