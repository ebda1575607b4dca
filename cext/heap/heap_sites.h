/* What the stacks have allocated: a record for each, in a mapped file. The exclusive lock is held. */
#pragma once

#include "heap/heap.h"

/* Stacks with a record of their own. Tests set less. */
VISIBLE extern uint32_t heap_sites_most;

/* There is none; the memory of those before is given back if it is this process's. False if there is no memory. */
bool heap_sites_begin(bool is_ours);

/* Create the file. 0 or the error's number. */
int heap_sites_create(void);

/* Of allocations from `stack`. If there are as many as there may be, those give way that have nothing in use and had nothing
   at the last peak, the process's `peaks`; if there are none, it is that of all others. */
struct heap_site *heap_site_of(uint32_t stack, uint64_t peaks);

/* That of all others. */
struct heap_site *heap_site_more(void);
