/* Python's own allocators, with ours before them: what they are asked for is sampled (heap/heap.h). */
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>

/* From now on they are asked by us, the interpreter's lock held. */
void allocators_begin(void);

/* Ask them directly again, unless somebody stands before us. */
void allocators_end(void);
