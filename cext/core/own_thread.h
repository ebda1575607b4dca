/* What the kernel tells the calling thread of its process. Ask of the thread: of one that has ended the kernel tells nothing, though
   it was the first, of which `/proc/self` and the process's number tell. */
#pragma once

#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

#define OWN_PROC "/proc/thread-self"

static inline pid_t own_thread(void)
{
    return (pid_t)syscall(SYS_gettid);
}
