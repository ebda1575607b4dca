/* Unmaps the files of a recording that has ended while the process continues. */
#pragma once

#include "core/visible.h"

/* Unmap every file in the directory of the one mapped at `inside`. Threads in the middle of a write may finish it
   until this is called the next time: private memory has taken the place of the files. */
void retire_files(const void *inside);
