"""The clock as Python sees it, for tests and benchmarks. The traced program does not import this."""

from libc.stdint cimport uint32_t, uint64_t
from libc.string cimport memset

cdef extern from "clock.h":
    enum clock_kind:
        CLOCK_KINDS
    struct reading:
        uint64_t wall_ns
        uint64_t cpu_ns
    struct c_clock "clock":
        uint32_t kind
        uint64_t syncs
        uint64_t behind_ns
        uint64_t sync_cpu_ns
        uint64_t last_cpu_ns
    reading clock_read(c_clock *) nogil
    reading clock_sync(c_clock *) nogil
    void clock_begin(c_clock *, clock_kind)
    void clock_end(c_clock *)
    bint clock_set_apart(c_clock *)
    clock_kind clock_choose(clock_kind, const char **)
    const char *clock_kind_name(clock_kind)
    uint64_t clock_ns(int) nogil

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
        """As if time had been stolen: what is believed of the thread's CPU time is ahead by so many nanoseconds."""
        self.clock.sync_cpu_ns += ahead_ns

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
