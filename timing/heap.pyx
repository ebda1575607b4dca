"""The heap as Python sees it: sampling of what the program allocates, switched on and off. What happens at an allocation is in
cext/heap; nothing here runs then."""

from libc.stdint cimport uint64_t

from interpose.timing.recorder cimport recorder_say

cdef extern from "heap/heap.h":
    int heap_begin(uint64_t)

cdef extern from "heap/allocators.h":
    void allocators_begin()
    void allocators_end()

cdef extern from "cpython/waiting_sites.h":
    int waiting_sites_begin()
    void waiting_sites_keep_many()

cdef extern from "<string.h>":
    const char *strerror(int)


def begin(uint64_t every_bytes):
    """Sample, from now on, the program's allocations, on average one for each `every_bytes`; 0: all.

    Returns whether it could begin; the reason for a failure is in the experiment.
    """
    cdef int failed = waiting_sites_begin()
    failed = failed if failed else heap_begin(every_bytes)
    waiting_sites_keep_many()
    if failed:
        recorder_say(b"missed", b'what="heap" why="%s" ' % strerror(failed))
        return False
    allocators_begin()
    return True


def end():
    """Sample no longer."""
    allocators_end()
