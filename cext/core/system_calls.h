/* Numbers of system calls that are newer than some C libraries, the same on each kind of machine. */
#pragma once

#include <sys/syscall.h>

#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434
#endif
#ifndef SYS_close_range
#define SYS_close_range 436
#endif
