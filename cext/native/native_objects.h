/* The import tables of all loaded objects: the slots of native intrinsics are exchanged, those of objects loaded later too, and
   all is put back at the end.

   Left out are: the C library and what belongs to it, and the loader, whose own calls are parts of calls; interpose itself;
   the interpreter, and those of its extension modules that are no more than a cover of system calls: what they call is
   recorded as the call of Python that it is. */
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
