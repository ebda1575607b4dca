"""The clock as Python sees it, for tests and benchmarks. The traced program does not import this."""

from libc.stdint cimport uint64_t
from libc.string cimport memset

from interpose.timing.clock cimport (
    CLOCK_KINDS,
    c_clock,
    clock_begin,
    clock_choose,
    clock_end,
    clock_kind,
    clock_kind_name,
    clock_ns,
    clock_read,
    clock_set_apart,
    clock_sync,
    reading,
)

cdef extern from "time.h":
    int CLOCK_MONOTONIC
    int CLOCK_THREAD_CPUTIME_ID

KINDS = tuple([clock_kind_name(<clock_kind>kind).decode() for kind in range(CLOCK_KINDS)])


cdef class Clock:
    """Wall and CPU time of the thread that made it; no other thread may read it.

    `kind` is one of KINDS; where it cannot be had the next one is taken.
    """

    cdef c_clock clock

    def __cinit__(self, str kind="auto"):
        memset(&self.clock, 0, sizeof(self.clock))
        if not clock_set_apart(&self.clock):
            raise MemoryError("too many clocks were made in this process")
        clock_begin(&self.clock, <clock_kind><int>KINDS.index(kind))

    def __dealloc__(self):
        clock_end(&self.clock)

    def read(self):
        """Wall and CPU time in nanoseconds."""
        cdef reading now = clock_read(&self.clock)
        return now.wall_ns, now.cpu_ns

    def sync(self):
        """The same, the kernel being asked."""
        cdef reading now = clock_sync(&self.clock)
        return now.wall_ns, now.cpu_ns

    def drift(self, long ahead_ns):
        """Put the believed CPU time of the thread ahead by this many nanoseconds, as after stolen time."""
        self.clock.sync_cpu_ns += ahead_ns

    def bend(self, double factor):
        """Believe from the next synchronisation on that a tick of the counter takes so many times as long."""
        self.clock.rate.known = self.clock.rate.measured = <uint64_t>(self.clock.rate.known * factor)

    def cost_ns(self, int readings=10000):
        """Mean cost of a reading in nanoseconds."""
        cdef uint64_t begun_ns = clock_ns(CLOCK_MONOTONIC)
        cdef int index
        for index in range(readings):
            clock_read(&self.clock)
        return (clock_ns(CLOCK_MONOTONIC) - begun_ns) / readings

    @property
    def kind(self):
        return KINDS[self.clock.kind]

    @property
    def syncs(self):
        """How often the kernel was asked."""
        return self.clock.syncs

    @property
    def behind_ns(self):
        """What synchronisations lay behind the reading before them, in all."""
        return self.clock.behind_ns


def thread_cpu_ns():
    """The kernel's clock of the calling thread's CPU time, in nanoseconds."""
    return clock_ns(CLOCK_THREAD_CPUTIME_ID)


def bare_reading_ns(int readings=10000):
    """Mean cost of reading the monotonic clock alone, in nanoseconds."""
    cdef uint64_t begun_ns = clock_ns(CLOCK_MONOTONIC)
    cdef int index
    for index in range(readings):
        clock_ns(CLOCK_MONOTONIC)
    return (clock_ns(CLOCK_MONOTONIC) - begun_ns) / readings


def choose(str wanted="auto"):
    """Which kind a session would use here, and why."""
    cdef const char *why
    kind = clock_choose(<clock_kind><int>KINDS.index(wanted), &why)
    return KINDS[kind], why.decode()
