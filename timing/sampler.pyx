"""The sampler of other processes (cext/sampler), for the monitor. The traced program does not import this."""

import os

from libc.errno cimport errno
from libc.stdint cimport uint32_t, uint64_t

cdef extern from "stdbool.h":
    ctypedef bint c_bool "bool"

cdef extern from "core/interpreter_layout.h":
    struct interpreter_layout:
        pass
    const char *const interpreter_layout_names[]

cdef extern from "sampler/counters.h" nogil:
    const unsigned COUNTERS_AT_MOST
    const unsigned COUNTER_FAULTS, COUNTER_SWITCHES, COUNTER_SOFTWARE, COUNTER_HARDWARE
    struct counter:
        uint64_t config
        uint32_t source
    struct counters:
        unsigned count
        counter *chosen
    int counters_try(counter, c_bool *)

cdef extern from "sampler/sampler.h" nogil:
    struct c_sampler "sampler":
        pass
    const uint64_t AT_EACH_RATE_BYTES
    c_sampler *sampler_begin(const char *, double, uint64_t, const counters *)
    int sampler_add(c_sampler *, int, const char *, const interpreter_layout *, const char *, uint64_t)
    int sampler_refuse(const char *, int)
    int sampler_try(int, uint64_t, c_bool *)
    void sampler_run(c_sampler *, uint64_t)
    void sampler_stop(c_sampler *)
    void sampler_end(c_sampler *)

SOURCES = {"faults": COUNTER_FAULTS, "switches": COUNTER_SWITCHES, "software": COUNTER_SOFTWARE, "hardware": COUNTER_HARDWARE}


cdef counter as_counter(tuple given):
    cdef counter made
    source, made.config = given
    made.source = SOURCES[source]
    return made


cdef class Sampler:
    """Samples the processes of the experiment in the directory `founder`, `rate` times a second, half as often after each
    `at_each_rate_bytes` of samples of a process; raises OSError. Counters are the sources and configs of
    `interpose/counters.py`; those beyond `COUNTERS_AT_MOST` are not read.

    One thread may add and run, any may stop.
    """

    cdef c_sampler *sampler

    def __cinit__(self, founder, double rate, uint64_t at_each_rate_bytes=AT_EACH_RATE_BYTES, counted=()):
        cdef bytes path = os.fsencode(founder)
        cdef counters chosen
        chosen.count = 0
        for each in tuple(counted)[:COUNTERS_AT_MOST]:
            chosen.chosen[chosen.count] = as_counter(each)
            chosen.count += 1
        self.sampler = sampler_begin(path, rate, at_each_rate_bytes, &chosen)
        if self.sampler == NULL:
            raise OSError(errno, os.strerror(errno), founder)

    def __dealloc__(self):
        self.close()

    def add(self, int pid, directory, dict layout, libraries, uint64_t memory_limit_bytes=0):
        """Sample the process `pid` from now on. `layout` describes its interpreter, by name; `libraries` are the
        directories of code that is not its own; its memory limit is 0 if unknown. Raises OSError: PermissionError if it
        may not be read, FileExistsError if it was sampled before."""
        cdef interpreter_layout found
        cdef uint64_t *places = <uint64_t *>&found
        cdef bytes path = os.fsencode(directory), lines = b"\n".join(map(os.fsencode, libraries))
        cdef int number = 0, failed
        self.check()
        while interpreter_layout_names[number] != NULL:
            places[number] = layout.get(interpreter_layout_names[number].decode(), 0)
            number += 1
        failed = sampler_add(self.sampler, pid, path, &found, lines, memory_limit_bytes)
        if failed:
            raise OSError(failed, os.strerror(failed), directory)

    def run(self, double seconds):
        """Sample for so long, or until the experiment's directory has changed, or `stop`."""
        cdef uint64_t for_ns = <uint64_t>(seconds * 1e9)
        self.check()
        with nogil:
            sampler_run(self.sampler, for_ns)

    def stop(self):
        """Have `run` return, and do nothing from now on."""
        if self.sampler != NULL:
            sampler_stop(self.sampler)

    def close(self):
        """Write what is not written yet."""
        if self.sampler != NULL:
            with nogil:
                sampler_end(self.sampler)
            self.sampler = NULL

    cdef check(self):
        if self.sampler == NULL:
            raise ValueError("the sampler is closed")


def refuse(directory, int why):
    """Note that the process that records into `directory` is not sampled, unless it was: an error number, or a reason of
    `interpose.experiments.model.sampled`."""
    sampler_refuse(os.fsencode(directory), why)


def try_counter(tuple given):
    """The error number if a counter, a source and a config, cannot be read here, else 0; and whether only in user mode."""
    cdef c_bool in_user_mode_only = False
    cdef int failed = counters_try(as_counter(given), &in_user_mode_only)
    return failed, bool(in_user_mode_only)


def try_process(int pid, uint64_t address):
    """Why the process `pid` may not be read at this address, empty if it may; and whether it can have an exact clock."""
    cdef c_bool has_clock = False
    cdef int failed = sampler_try(pid, address, &has_clock)
    return os.strerror(failed) if failed else "", bool(has_clock)
