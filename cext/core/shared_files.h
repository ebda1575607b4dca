/* Memory mappings: the files that this or another process has mapped for writing, as a recording does; and whether this
   process can write to an address. */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "core/visible.h"

enum { SHARED_FILES_UNKNOWN = -1 }; /* before Linux 6.11, and of a process whose first thread has ended */

/* Open the list of what the process has mapped: a descriptor, or less than 0 where it is not for us to see. */
VISIBLE int shared_files_open(pid_t pid);

/* The path of the next such mapping from the address `*from` on, which moves behind it: 1; 0 where there are no more;
   SHARED_FILES_UNKNOWN where the kernel cannot say. */
VISIBLE int shared_files_next(int list, uint64_t *from, char *path, size_t bytes);

/* 1 if this process can write to the mapping at an address, 0 if not; `begin` and `end` are set if there is one.
   SHARED_FILES_UNKNOWN if the kernel cannot say. */
VISIBLE int mapping_is_writable(uintptr_t address, uintptr_t *begin, uintptr_t *end);
