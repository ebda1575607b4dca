/* Probes in the bytecode of 3.11: each is told once that its place is come to, and then is no more.

   A chosen code object is replaced, before it is first executed, by one that is the same but for stubs behind its last
   instruction. Where a place begins there stands at first a jump to its stub, which calls us and jumps back; when called we put
   back what stood there, so that what has been executed runs as if nothing had been done. What Python shows of the code object
   (co_code, the tables of lines and of exceptions, the constants) knows nothing of this.

   A stub has no line, cannot raise and is never interrupted: nobody sees a frame that is in one. It calls us by ~AssertionError,
   the one value that an instruction has at hand whatever the program did, by a slot of `type` that is else empty. */
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdbool.h>

/* False where the slots that probes need are not there. */
bool probes_begin(void);

/* All that are armed are taken out. */
void probes_end(void);
