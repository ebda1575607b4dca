/* Where the experiment is now, after a directory above it was renamed: the kernel knows the present name of a file that is
   mapped. */
#pragma once

#include <stdbool.h>

#include "core/open_file.h"

/* `path` is the file of which a part is mapped at `mapped`, for as long as the process records. */
void moved_watch(const char *path, const void *mapped);

/* If the watched file is no longer at its path, ask the kernel where it is. True if a new path was found. */
bool moved_find(void);

/* Where the file or directory of that path is now: `path` itself, or its new path, written to `room`. */
const char *moved_path(const char *path, char room[PATH_BYTES]);

/* Whether a new path was ever found. */
bool moved_any(void);
