/* Which end of a pseudo-terminal a descriptor is. */
#pragma once

#include <stdbool.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

/* The master is the end of the process that controls a program. The program's own end is a terminal. */
static inline bool is_master(const struct stat *status)
{
    return S_ISCHR(status->st_mode) && status->st_rdev == makedev(5, 2); /* /dev/ptmx, under whatever path */
}
