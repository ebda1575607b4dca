/* Memory that a forked child finds zeroed (MADV_WIPEONFORK), however it was forked. By it a process knows that it is a
   child, for numbers of processes tell nothing: in a namespace of its own a child may have its parent's. */
#pragma once

#include <stddef.h>

#include "core/visible.h"

/* So many bytes, zeroed, on a cache line of their own; never given back. NULL with errno set where there is no room. The
   caller holds the exclusive lock, or is the only thread. */
VISIBLE void *wiped_take(size_t bytes);

/* The process is a forked child: another thread may have been here when it was forked. */
void wiped_begin_child(void);
