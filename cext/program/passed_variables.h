/* The environment that a program passes on, with what its child needs to be recorded. It is built on the caller's stack, because a
   child of vfork(2) may not allocate. */
#pragma once

#include <stddef.h>

struct variables_room {
    size_t count, bytes; /* of the array, and of new texts in it; 1 each: it is passed on as it is */
};

/* Keep what switches recording on, from the environment that this program was given, for children that get another one. */
void passed_variables_keep(char *const *given);

/* How much room is needed for what is passed on in the place of `given`. */
struct variables_room room_for_variables(char *const *given);

/* The environment for the program at `path` with these words; `given` itself if nothing is to be changed. `passed` and `texts`
   have that much room, and stay until the call has returned. What `given` lacks is named in INTERPOSE_ADDED. */
char *const *pass_variables(char *const *given, const char *path, char *const *words, char **passed, char *texts);
