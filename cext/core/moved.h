/* Where the experiment is now, after a directory above it was renamed: the kernel knows the present name of a file that is
   mapped. */
#pragma once

#include <stdbool.h>

#include "core/open_file.h"

/* `path` is the file of which a part is mapped at `mapped`, for as long as the process records. */
void moved_watch(const char *path, const void *mapped);

/* Has it another path than it had when last asked? */
bool moved_find(void);

/* Where the file or directory of that path is now: `path`, or what is then in `room`. */
const char *moved_path(const char *path, char room[PATH_BYTES]);

/* Is anything elsewhere than its path says? */
bool moved_any(void);
