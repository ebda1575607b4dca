/* Probes in the bytecode of 3.11: each fires once, when its place is reached, then removes itself. A chosen code
   object is replaced, before it is first executed, by one that is the same except for stubs after its last instruction.
   A place begins with a jump to its stub, which calls us and jumps back. We then restore the original instructions, so
   executed code runs as if nothing had been done. What Python shows of the code object (co_code, the tables of lines
   and of exceptions, the constants) does not change. A stub has no line, cannot raise and is never interrupted: nobody
   sees a frame in one. It calls us by ~AssertionError, the one value that an instruction has at hand whatever the
   program did, through an otherwise empty slot of `type`. */
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdbool.h>

/* False if the slots that probes need are not there. */
bool probes_begin(void);

/* All that are armed are taken out. */
void probes_end(void);
