# cython: boundscheck=False, wraparound=False, cdivision=True
"""The fields of events, column by column, as numbers of 64 bits."""

from cpython.buffer cimport PyBUF_SIMPLE, PyBUF_WRITABLE, PyBuffer_Release, PyObject_GetBuffer
from libc.stdint cimport uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy, memset


cdef struct Field:
    size_t offset
    int size_bytes  # 0: the record does not have it


cdef void gather(const uint8_t *records, size_t count, size_t record_bytes, Field field, uint8_t *into) noexcept nogil:
    """One field of `count` records, which may be anywhere in memory."""
    cdef uint64_t wide
    cdef uint32_t narrow
    cdef size_t i
    cdef const uint8_t *place = records + field.offset
    if field.size_bytes == 8:
        for i in range(count):
            memcpy(into + 8 * i, place + i * record_bytes, 8)
    elif field.size_bytes == 4:
        for i in range(count):
            memcpy(&narrow, place + i * record_bytes, 4)
            wide = narrow
            memcpy(into + 8 * i, &wide, 8)
    else:
        memset(into, 0, 8 * count)


cdef class EventColumns:
    """Columns of the fields `names`, zeros where the layout has none, until they are taken."""

    cdef readonly size_t rows
    cdef size_t record_bytes
    cdef tuple names
    cdef list fields
    cdef list parts

    def __init__(self, layout, names):
        self.names = tuple(names)
        self.record_bytes = layout.record_bytes
        known = layout.unsigned(self.names).fields
        self.fields = [(known[name].offset, known[name].size_bytes) if name in known else (0, 0) for name in self.names]
        self.parts = [bytearray() for _ in self.names]
        self.rows = 0

    def add(self, events):
        """Add the events of a block, which must be whole records."""
        cdef Py_buffer given, made
        cdef size_t count, before = 8 * self.rows
        cdef Field field
        PyObject_GetBuffer(events, &given, PyBUF_SIMPLE)
        try:
            count = <size_t>given.len // self.record_bytes
            for part, (offset, size_bytes) in zip(self.parts, self.fields, strict=True):
                part.extend(bytes(8 * count))
                field = Field(offset, size_bytes)
                PyObject_GetBuffer(part, &made, PyBUF_WRITABLE)
                with nogil:
                    gather(<const uint8_t *>given.buf, count, self.record_bytes, field, <uint8_t *>made.buf + before)
                PyBuffer_Release(&made)
            self.rows += count
        finally:
            PyBuffer_Release(&given)

    def take(self):
        """The columns so far by name; from now on they are empty."""
        found = dict(zip(self.names, self.parts, strict=True))
        self.parts = [bytearray() for _ in self.names]
        self.rows = 0
        return found
