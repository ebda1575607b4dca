"""The clock in C (cext/core/clock.h)."""

from libc.stdint cimport uint32_t, uint64_t

cdef extern from "core/clock.h" nogil:
    enum clock_kind:
        CLOCK_KINDS
    struct reading:
        uint64_t wall_ns
        uint64_t cpu_ns
    struct tick_rate:
        uint64_t known
        uint64_t measured
    struct c_clock "clock":
        tick_rate rate
        uint32_t kind
        uint64_t syncs
        uint64_t behind_ns
        uint64_t sync_cpu_ns
        uint64_t last_cpu_ns
    reading clock_read(c_clock *)
    reading clock_sync(c_clock *)
    void clock_begin(c_clock *, clock_kind)
    void clock_end(c_clock *)
    bint clock_set_apart(c_clock *)
    clock_kind clock_choose(clock_kind, const char **)
    const char *clock_kind_name(clock_kind)
    uint64_t clock_ns(int)
