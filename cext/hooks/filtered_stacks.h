/* The filter's decisions about recently seen stacks, so that each is made once and not at each call. A stack is
   identified by its codes: each frame, from the innermost outward, must be anywhere in the code where a cached one was.
   So only frames are read, and none of the codes' data. The decision holds for these codes with certainty: when one is
   freed everything is dropped, because another code may get its address. */
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdbool.h>

void seen_stacks_forget(void);

/* Is one of the functions that run one of those asked for, and none one of those left out? */
bool within_passes(PyThreadState *state);
