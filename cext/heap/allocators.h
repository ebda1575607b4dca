/* Python's own allocators, with ours before them: what they are asked for is sampled (heap/heap.h). */
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>

/* From now on they are called through us; the interpreter lock is held. */
void allocators_begin(void);

/* Call them directly again, unless another allocator was put before ours. */
void allocators_end(void);
