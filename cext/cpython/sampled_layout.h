/* What this process tells the one that samples it of where its interpreter has what (core/interpreter_layout.h). */
#pragma once

#include "core/interpreter_layout.h"
#include "core/visible.h"

/* All of it is 0 if this version of Python cannot be sampled. */
VISIBLE struct interpreter_layout sampled_layout(void);
