"""What Python has no call for: giving space of a file back, and which file system a file is on."""

import os

from libc.errno cimport errno


cdef extern from *:
    """
    #ifndef _GNU_SOURCE
    #define _GNU_SOURCE
    #endif
    #include <fcntl.h>
    """
    pass


cdef extern from "fcntl.h" nogil:
    int fallocate(int descriptor, int mode, long offset, long length)
    int FALLOC_FL_PUNCH_HOLE
    int FALLOC_FL_KEEP_SIZE


cdef extern from "sys/vfs.h" nogil:
    struct statfs:
        long f_type
    int fstatfs(int descriptor, statfs *status)


# ext2 to ext4, XFS, Btrfs, tmpfs, F2FS (statfs(2)).
LOCAL = (0xEF53, 0x58465342, 0x9123683E, 0x01021994, 0xF2F52010)


def is_local(int descriptor):
    """Whether a file is on a file system of which the kernel itself knows all that is done with the file."""
    cdef statfs status
    return fstatfs(descriptor, &status) == 0 and <unsigned>status.f_type in LOCAL


def give_back(int descriptor, long offset, long length):
    """Make a hole of `length` bytes in a file, whose size stays. Raises OSError."""
    cdef int failed
    with nogil:
        failed = fallocate(descriptor, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, offset, length)
    if failed:
        raise OSError(errno, os.strerror(errno))
