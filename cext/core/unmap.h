/* The mapped files of a recording that has ended, which are let go of while the process goes on. */
#pragma once

#include "core/visible.h"

/* Let go of every file in the directory of the one that is mapped at `inside`. Threads that had begun to write somewhere may
   go on writing there until this is called the next time: memory of nobody's has taken the place of the files. */
void retire_files(const void *inside);
