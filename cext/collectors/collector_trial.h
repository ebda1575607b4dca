/* A data collector in C is tried in a process of its own before it is used. */
#pragma once

/* In a child process, load the library at `path`, read its collector's declaration, call it, and read its result.
   Returns TRIAL_WELL if it ended well, or cannot be tried; TRIAL_LEFT if the collector ended the child, TRIAL_HANGS if it
   did not return although it had the processor, or the signal that ended the child. The program notices nothing of the
   child, nor of what it writes to open descriptors. */
enum { TRIAL_WELL = 0, TRIAL_LEFT = -1, TRIAL_HANGS = -2 };
int try_collector(const char *path);
