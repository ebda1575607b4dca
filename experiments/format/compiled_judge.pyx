# cython: boundscheck=False, wraparound=False, cdivision=True
"""The compiled judge: finds the same events as `interpose.experiments.format.possible.PlainJudge`."""

from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from cython cimport final
from libc.stdint cimport uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy

from interpose.experiments.format import possible as plain

cdef enum:
    START, WALL, CPU, THREAD, BYTES, FIELDS

assert plain.JUDGED == ("start_ns", "wall_ns", "cpu_ns", "thread", "bytes")

cdef uint64_t LONGEST_NS = plain.LONGEST_NS
cdef uint64_t LATEST_NS = plain.LATEST_NS
cdef uint64_t MOST_THREADS = plain.MOST_THREADS
cdef uint64_t MOST_BYTES = plain.MOST_BYTES


cdef struct Field:
    size_t offset
    size_t size_bytes  # 0: the record does not have it


cdef inline uint64_t load(const uint8_t *record, Field field) noexcept nogil:
    cdef uint64_t wide = 0
    cdef uint32_t narrow
    if field.size_bytes == 8:
        memcpy(&wide, record + field.offset, 8)
    elif field.size_bytes == 4:
        memcpy(&narrow, record + field.offset, 4)
        wide = narrow
    return wide


@final
cdef class CompiledJudge:
    """Tells which of the records of one layout are impossible events."""

    cdef Field fields[FIELDS]
    cdef size_t record_bytes

    def __init__(self, layout):
        known = layout.unsigned(plain.JUDGED).fields
        for place, name in enumerate(plain.JUDGED):
            self.fields[place] = Field(known[name].offset, known[name].size_bytes) if name in known else Field(0, 0)
        self.record_bytes = layout.record_bytes

    def impossible(self, events):
        """The positions of the impossible ones among `events`, which must be whole records."""
        cdef Py_buffer given
        cdef size_t place, count
        found = []
        PyObject_GetBuffer(events, &given, PyBUF_SIMPLE)
        try:
            count = <size_t>given.len // self.record_bytes
            place = self.next(<const uint8_t *>given.buf, 0, count)
            while place < count:
                found.append(place)
                place = self.next(<const uint8_t *>given.buf, place + 1, count)
        finally:
            PyBuffer_Release(&given)
        return found

    cdef size_t next(self, const uint8_t *events, size_t place, size_t count) noexcept nogil:
        """The position of the first impossible event from `place` on, or `count`."""
        while place < count and self.is_possible(events + place * self.record_bytes):
            place += 1
        return place

    cdef inline bint is_possible(self, const uint8_t *event) noexcept nogil:
        cdef uint64_t wall_ns = load(event, self.fields[WALL])
        return (
            wall_ns <= LONGEST_NS
            and load(event, self.fields[CPU]) <= wall_ns
            and load(event, self.fields[START]) <= LATEST_NS
            and load(event, self.fields[THREAD]) <= MOST_THREADS
            and load(event, self.fields[BYTES]) <= MOST_BYTES
        )
