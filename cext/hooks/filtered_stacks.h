/* What the filter found of the functions on stacks that were seen lately, so that it is found once and not at each call.

   A stack is told by its codes: each frame, from the innermost out, has to be where one was that was looked at, anywhere
   in the same code. So nothing is read but the frames, and not what is known of their codes. That what is found holds for
   these codes is for sure: of one that is freed all is forgotten, for another may lie there next. */
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdbool.h>

void seen_stacks_forget(void);

/* Is one of the functions that run one of those asked for, and none one of those left out? */
bool within_passes(PyThreadState *state);
