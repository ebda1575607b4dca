/* Memory that a forked child finds zeroed (MADV_WIPEONFORK), however it was forked. It tells a process that it is a
   child; process numbers do not: in its own namespace a child may have its parent's number. */
#pragma once

#include <stddef.h>

#include "core/visible.h"

/* This many bytes, zeroed, on a cache line of their own; never freed. NULL with errno set if there is no room. The
   caller holds the exclusive lock, or is the only thread. */
VISIBLE void *wiped_take(size_t bytes);

/* The process is a forked child: another thread may have been here when it was forked. */
void wiped_begin_child(void);
