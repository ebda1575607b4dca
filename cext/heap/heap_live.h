/* The samples that are live, by their addresses. The exclusive lock is held. */
#pragma once

#include "heap/heap.h"

/* Zeroed pages; NULL if there are none. */
void *heap_memory(size_t bytes);

/* There is none; the memory of those before is given back if it is this process's. False if there is no memory. */
bool heap_live_begin(bool is_ours);

/* Where the sample is, or would be: then its address is 0. */
struct heap_sample *heap_live_find(uintptr_t address);

/* Is there room for another? */
bool heap_live_has_room(void);

void heap_live_keep(const struct heap_sample *sample);
void heap_live_remove(struct heap_sample *sample);
