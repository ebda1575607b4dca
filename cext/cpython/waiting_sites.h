/* Where a thread is that waits for the interpreter lock.

   What hangs on code objects is read and written by whoever has that lock, and nothing of Python's may be called without.
   So these are for a moment at which nobody has it nor can take it: what is known is only read, and what is not is made from
   what a code object never changes. Frames are those of a thread that waits. */
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stddef.h>
#include <stdint.h>

#include "core/visible.h"
#include "cpython/frame.h"

/* The innermost frame of the calling thread, whether or not it has the lock, where places are kept; NULL also where the
   interpreter may have freed it, being taken down. */
VISIBLE frame *own_innermost_frame(void);

/* Nothing is known yet of a recording that has begun. What is known of it stays if another part of it begins later: a thread
   that waits may be looking at it. 0 or the error's number. */
VISIBLE int waiting_sites_begin(void);

/* As stack_of. */
VISIBLE uint32_t stack_of_waiting(frame *frame, bool whole);

/* The same where others may have the lock meanwhile: what hangs on code objects is not looked at. */
VISIBLE uint32_t stack_without_lock(frame *frame);

/* `/srv/app.py:41 hold`: the innermost place in the program's own code, or else of all. Gives the text's length. */
VISIBLE size_t describe_waiting(frame *frame, char *text, size_t room);
