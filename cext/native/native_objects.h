/* The import tables of all loaded objects: the slots of native intrinsics are exchanged, also in objects loaded
   later, and all are restored at the end. */
#pragma once

#include <stdbool.h>

/* Find the C library's functions; the next finds objects. */
void native_prepare(void);

/* Examine objects that were not examined yet. With the interpreter lock held. */
void native_look(void);

/* Restore what was exchanged. Returns the number of slots that could not be, because somebody else has replaced
   ours. */
int native_end_all(void);

/* Do calls go through wrappers? */
bool native_is_on(void);
