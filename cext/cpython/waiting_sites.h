/* The site of a thread that waits for the interpreter lock. Data attached to code objects is read and written with
   that lock, and no Python function may be called without it. So these functions are for a moment at which nobody has
   the lock nor can take it: known data is only read, and unknown data is made from the constant parts of a code object.
   Frames are those of a waiting thread. */
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/intern.h"
#include "core/visible.h"
#include "cpython/frame.h"

/* The calling thread's state, whether or not it has the lock, and its innermost frame, where places are kept; NULL also where the
   interpreter may have freed it, being taken down. */
VISIBLE PyThreadState *own_state(void);
VISIBLE frame *own_innermost_frame(void);

/* Forget everything when a recording begins. What is known stays if another part of the recording begins later,
   because a waiting thread may be reading it. 0 or the error number. */
VISIBLE int waiting_sites_begin(void);

/* Sites and stacks get new numbers less often; it costs memory. */
VISIBLE void waiting_sites_keep_many(void);

/* As stack_of. */
VISIBLE uint32_t stack_of_waiting(frame *frame, bool whole);

/* The same if others may have the lock meanwhile: data attached to code objects is not read. */
VISIBLE uint32_t stack_without_lock(frame *frame);

/* The same of the one or the other, by `has_lock`, where most calls come from the place that the last one came from. */
VISIBLE uint32_t stack_again(frame *frame, bool has_lock, struct cached *last);

/* `/srv/app.py:41 hold`: the innermost place in the program's own code, or else of all. Returns the text's length. */
VISIBLE size_t describe_waiting(frame *frame, char *text, size_t room);
