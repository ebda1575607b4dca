/* A data collector in C is tried in a process of its own before it is used. */
#pragma once

/* Load the library at `path` in a child, read what its collector says of itself, call it, and read what it gives. The
   signal that this ended with; 0 where it ended well, or cannot be tried. The program sees nothing of the child, nor of
   what it writes to descriptors that are open. */
int try_collector(const char *path);
