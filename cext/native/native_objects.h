/* The import tables of all loaded objects: the slots of native intrinsics are exchanged, those of objects loaded later too, and
   all is put back at the end. */
#pragma once

#include <stdbool.h>

/* Find the C library's functions; the next finds objects. */
void native_prepare(void);

/* Look at objects that were not looked at yet. With the interpreter's lock held. */
void native_look(void);

/* Put back what was exchanged. How many slots could not be, because somebody else has put his own upon ours. */
int native_end_all(void);

/* Do calls go through wrappers? */
bool native_is_on(void);
