/* What a call of flock, lockf or fcntl does with the lock of a file, and of which file. */
#pragma once

#include "hooks/call.h"

/* Whether a call of fcntl is about a lock. */
bool is_lock_command(const struct call *call);

/* `lock /tmp/jobs.lock`: the operation, which cannot be told from the intrinsic, and the whole path, by which processes in
   different directories mean the same file. The file has that descriptor. */
uint32_t file_lock_detail(const struct call *call, int descriptor);
