/* One name for a file that has several: `/app/bin/../lib/a.py` is `/app/lib/a.py`, unless `bin` is a symbolic link. */
#pragma once

#include "core/visible.h"

/* Shorten an absolute path in place: without `.`, without a directory that `..` leaves, and with single slashes. What
   `..` follows is looked at on disk, below `root` (empty: the process's own), and stays if it is a link or is not there.
   Other texts stay as they are; errno, too. */
VISIBLE void path_name(char *path, const char *root);
