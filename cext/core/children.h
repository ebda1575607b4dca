/* The processes that this one started or tried to start, and how they ended: one record for each attempt, in a file that
   is made with the first.

   All of it runs in the parent, one thread at a time: no record is written twice, and none is lost. A child of vfork(2) runs in its parent's memory, but never comes here: it is in C code of
   the interpreter's until it is another program. */
#pragma once

#include <sys/resource.h>

#include "core/series.h"

/* Forget all children: a recording begins, or that of a forked child. */
void children_forget(void);

/* The caller holds the exclusive lock. Record an attempt; a child that was waited for before this has its end
   already. NULL with errno set if there is no room. */
struct child *children_add(const char *directory, const struct child *attempt);

/* A call that may wait for children begins: separate what they use from what others used before. */
VISIBLE void children_waited_for(void);

/* In that call the kernel has reported to the calling thread that the child ended, and what it used. Any thread,
   with or without the interpreter lock; it takes no lock. */
VISIBLE void children_reaped(uint32_t pid, const struct rusage *used);

/* One ended, as waitpid(2) said, in the call that began so. */
VISIBLE void child_ended(struct child *child, int32_t status, uint64_t end_ns);

/* The same of the last one with this number of whom that is not known. */
VISIBLE void children_ended(uint32_t pid, int32_t status, uint64_t end_ns);

/* What the thread started last, at `since_ns` or later, failed. */
VISIBLE void children_failed(uint32_t thread, uint64_t since_ns, uint32_t error);
