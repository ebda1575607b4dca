/* A data collector in C is tried in a process of its own before it is used. */
#pragma once

/* In a child process, load the library at `path`, read its collector's declaration, call it, and read its result.
   Returns the signal that ended this; 0 if it ended well, or cannot be tried. The program notices nothing of the child,
   nor of what it writes to open descriptors. */
int try_collector(const char *path);
