# cython: boundscheck=False, wraparound=False, cdivision=True
"""The compiled arrangement of records: the same bytes as `interpose.experiments.format.columns.PlainColumns`."""

from cpython.buffer cimport PyBUF_SIMPLE, PyBUF_WRITABLE, PyBuffer_Release, PyObject_GetBuffer
from cython cimport final
from libc.stdint cimport uint8_t, uint64_t
from libc.stdlib cimport calloc, free, realloc
from libc.string cimport memcpy, memmove, memset

from interpose.experiments.format import columns as plain
from interpose.experiments.format.columns import ArrangementError, columns_of

cdef enum:
    VALUE, SAME, NEXT, AFTER, LESS, BACK

assert (plain.VALUE, plain.SAME, plain.NEXT, plain.AFTER, plain.LESS, plain.BACK) == (
    VALUE, SAME, NEXT, AFTER, LESS, BACK
)


cdef struct Column:
    size_t offset
    size_t size_bytes
    int kind
    size_t other
    uint64_t most


cdef inline uint64_t load(const uint8_t *place, size_t size_bytes) noexcept nogil:
    cdef uint64_t number = 0
    if size_bytes == 8:
        memcpy(&number, place, 8)
    elif size_bytes == 4:
        memcpy(&number, place, 4)
    else:
        memcpy(&number, place, size_bytes)
    return number


cdef inline void store(uint8_t *place, uint64_t number, size_t size_bytes) noexcept nogil:
    if size_bytes == 8:
        memcpy(place, &number, 8)
    elif size_bytes == 4:
        memcpy(place, &number, 4)
    else:
        memcpy(place, &number, size_bytes)


cdef inline uint64_t to_both_sides(uint64_t difference, uint64_t most) noexcept nogil:
    difference &= most
    return (difference << 1 & most) ^ (most if difference > most >> 1 else 0)


cdef inline uint64_t from_both_sides(uint64_t number) noexcept nogil:
    return (number >> 1) ^ (0 - (number & 1))


cdef inline uint64_t back(uint64_t number, uint64_t other, uint64_t most) noexcept nogil:
    return number if number == 0 or number == other else other - number & most


cdef inline uint64_t say_all(
    const Column *column, const uint8_t *records, size_t count, size_t step, uint64_t *numbers, size_t size
) noexcept nogil:
    """Inlined for each size, which makes of every load one instruction."""
    cdef const uint8_t *at = records + column.offset
    cdef const uint8_t *other = records + column.other
    cdef size_t i
    cdef uint64_t every = 0, most = column.most
    cdef uint64_t first = load(at, size) if column.kind == SAME else 0
    for i in range(count):
        at += step
        other += step
        if column.kind == VALUE or column.kind == SAME:
            numbers[i] = load(at, size) ^ first
        elif column.kind == NEXT:
            numbers[i] = to_both_sides(load(at, size) - load(at - step, size) - 1, most)
        elif column.kind == AFTER:
            numbers[i] = to_both_sides(load(at, size) - load(at - step, size) - load(other - step, size), most)
        elif column.kind == LESS:
            numbers[i] = load(other, size) - load(at, size) & most
        else:
            numbers[i] = back(load(at, size), load(other, size), most)
        every |= numbers[i]
    return every


cdef inline void put_all(
    const Column *column, uint8_t *records, size_t count, size_t step, const uint64_t *numbers, size_t size
) noexcept nogil:
    """The reverse."""
    cdef uint8_t *at = records + column.offset
    cdef const uint8_t *other = records + column.other
    cdef size_t i
    cdef uint64_t most = column.most, last = load(at, size)
    cdef uint64_t first = last if column.kind == SAME else 0
    for i in range(count):
        at += step
        if column.kind == VALUE or column.kind == SAME:
            store(at, numbers[i] ^ first, size)
        elif column.kind == NEXT:
            last += 1 + from_both_sides(numbers[i])
            store(at, last, size)
        elif column.kind == AFTER:
            last += load(other + i * step, size) + from_both_sides(numbers[i])
            store(at, last, size)
        elif column.kind == LESS:
            store(at, load(other + (i + 1) * step, size) - numbers[i], size)
        else:
            store(at, back(numbers[i], load(other + (i + 1) * step, size), most), size)


cdef inline bint is_as_the_first(const Column *column, const uint8_t *records) noexcept nogil:
    """Whether all records have in the column what the first has, when only zeros are stored of it."""
    return column.kind == SAME or (column.kind == VALUE and load(records + column.offset, column.size_bytes) == 0)


cdef inline void repeat(uint8_t *records, const uint8_t *first, size_t record_bytes, size_t count) noexcept nogil:
    """Fill with copies of one record, twice as many each time."""
    cdef size_t done = record_bytes, end = record_bytes * count, piece
    memcpy(records, first, record_bytes)
    while done < end:
        piece = done if done < end - done else end - done
        memcpy(records + done, records, piece)
        done += piece


@final
cdef class CompiledColumns:
    """Arranges records of one layout, and puts them back; as PlainColumns."""

    cdef Column *columns
    cdef size_t column_count
    cdef size_t record_bytes
    cdef size_t mask_bytes
    cdef uint64_t *numbers  # of one column, room for `room`
    cdef size_t room

    def __cinit__(self, layout):
        found = columns_of(layout)
        self.record_bytes = layout.record_bytes
        self.mask_bytes = (self.record_bytes + 7) // 8
        self.column_count = len(found)
        self.columns = <Column *>calloc(self.column_count, sizeof(Column))
        if self.columns == NULL:
            raise MemoryError
        for i, (offset, size_bytes, kind, other) in enumerate(found):
            if not (0 < size_bytes <= 8 and offset + size_bytes <= self.record_bytes
                    and other + size_bytes <= self.record_bytes):
                raise ValueError(f"a column at {offset}")
            self.columns[i] = Column(offset, size_bytes, kind, other, <uint64_t>((1 << 8 * size_bytes) - 1))

    def __dealloc__(self):
        free(self.columns)
        free(self.numbers)

    def arrange(self, records):
        """The arrangement of `records`, which must be whole and at least one."""
        cdef Py_buffer given
        PyObject_GetBuffer(records, &given, PyBUF_SIMPLE)
        try:
            return self.arrangement(<const uint8_t *>given.buf, given.len // self.record_bytes)
        finally:
            PyBuffer_Release(&given)

    cdef bytes arrangement(self, const uint8_t *records, size_t count):
        cdef size_t used
        if count == 0:
            raise ValueError("no records")
        cdef bytearray arranged = bytearray(self.record_bytes * count + self.mask_bytes)
        cdef uint8_t *out = arranged
        self.make_room(count)
        with nogil:
            used = self.arrange_all(records, count, out)
        return (<const char *>out)[:used]

    def restore(self, arranged, size_t count, into):
        """Put the `count` records that were arranged, at least one, into the beginning of `into`. Raises
        ArrangementError."""
        cdef Py_buffer given, out
        PyObject_GetBuffer(arranged, &given, PyBUF_SIMPLE)
        try:
            PyObject_GetBuffer(into, &out, PyBUF_WRITABLE)
            try:
                self.restore_checked(<const uint8_t *>given.buf, given.len, count, <uint8_t *>out.buf, out.len)
            finally:
                PyBuffer_Release(&out)
        finally:
            PyBuffer_Release(&given)

    cdef int restore_checked(
        self, const uint8_t *arranged, size_t length, size_t count, uint8_t *out, size_t room
    ) except -1:
        if count == 0 or length < self.record_bytes + self.mask_bytes or not self.fits(arranged, length, count):
            raise ArrangementError(f"{length} bytes are not {count} arranged records")
        if room // self.record_bytes < count:
            raise ArrangementError(f"no room for {count} records")
        self.make_room(count)
        with nogil:
            self.restore_all(arranged, count, out)
        return 0

    cdef int make_room(self, size_t count) except -1:
        cdef uint64_t *numbers
        if count > self.room:
            numbers = <uint64_t *>realloc(self.numbers, count * sizeof(uint64_t))
            if numbers == NULL:
                raise MemoryError
            self.numbers = numbers
            self.room = count
        return 0

    cdef inline bint has(self, const uint8_t *mask, size_t place) noexcept nogil:
        return mask[place >> 3] >> (place & 7) & 1

    cdef size_t planes_before(self, const uint8_t *mask, size_t end) noexcept nogil:
        cdef size_t place, count = 0
        for place in range(end):
            count += self.has(mask, place)
        return count

    cdef bint fits(self, const uint8_t *arranged, size_t length, size_t count) noexcept nogil:
        """Whether so many records can be in so many bytes, and nothing else."""
        cdef const uint8_t *mask = arranged + self.record_bytes
        cdef size_t there = self.planes_before(mask, self.record_bytes)
        if self.planes_before(mask, self.mask_bytes * 8) != there or (there and count - 1 > length):
            return False
        return length - self.record_bytes - self.mask_bytes == there * (count - 1)

    cdef size_t arrange_all(self, const uint8_t *records, size_t count, uint8_t *out) noexcept nogil:
        """Returns the bytes of the arrangement. Each plane is made where it is if all are there, and then moved up."""
        cdef size_t i, k, place, used = 0, last = count - 1
        cdef uint8_t *mask = out + self.record_bytes
        cdef uint8_t *planes = mask + self.mask_bytes
        cdef uint8_t *plane
        cdef uint64_t every
        cdef Column *column
        memcpy(out, records, self.record_bytes)
        for k in range(self.column_count):
            column = &self.columns[k]
            every = self.say_anew(column, records, last)
            for place in range(column.offset, column.offset + column.size_bytes):
                if every & 255:
                    mask[place >> 3] |= 1 << (place & 7)
                    plane = planes + place * last
                    for i in range(last):
                        plane[i] = <uint8_t>(self.numbers[i] >> 8 * (place - column.offset))
                every >>= 8
        for place in range(self.record_bytes):
            if self.has(mask, place):
                memmove(planes + used, planes + place * last, last)
                used += last
        return self.record_bytes + self.mask_bytes + used

    cdef uint64_t say_anew(self, const Column *column, const uint8_t *records, size_t count) noexcept nogil:
        """Put what is stored of the column, of `count` records after the first, into `numbers`; returns all their bits."""
        if column.size_bytes == 8:
            return say_all(column, records, count, self.record_bytes, self.numbers, 8)
        if column.size_bytes == 4:
            return say_all(column, records, count, self.record_bytes, self.numbers, 4)
        return say_all(column, records, count, self.record_bytes, self.numbers, column.size_bytes)

    cdef void restore_all(self, const uint8_t *arranged, size_t count, uint8_t *records) noexcept nogil:
        cdef const uint8_t *mask = arranged + self.record_bytes
        cdef const uint8_t *planes = mask + self.mask_bytes
        cdef size_t k, last = count - 1
        cdef Column *column
        repeat(records, arranged, self.record_bytes, count)
        for k in range(self.column_count):
            column = &self.columns[k]
            if self.gather(column, mask, planes, last) or not is_as_the_first(column, records):
                self.put_back(column, records, last)

    cdef bint gather(self, const Column *column, const uint8_t *mask, const uint8_t *planes, size_t count) noexcept nogil:
        """Put what is stored of the column into `numbers`; false if that is nothing but zeros."""
        cdef size_t i, place
        cdef bint found = False
        cdef const uint8_t *plane
        for place in range(column.size_bytes):
            if not self.has(mask, column.offset + place):
                continue
            plane = planes + self.planes_before(mask, column.offset + place) * count
            if found:
                for i in range(count):
                    self.numbers[i] |= <uint64_t>plane[i] << 8 * place
            else:
                for i in range(count):
                    self.numbers[i] = <uint64_t>plane[i] << 8 * place
            found = True
        if not found:
            memset(self.numbers, 0, count * sizeof(uint64_t))
        return found

    cdef void put_back(self, const Column *column, uint8_t *records, size_t count) noexcept nogil:
        """Make numbers of what was stored of the column, and put them into the records after the first."""
        if column.size_bytes == 8:
            put_all(column, records, count, self.record_bytes, self.numbers, 8)
        elif column.size_bytes == 4:
            put_all(column, records, count, self.record_bytes, self.numbers, 4)
        else:
            put_all(column, records, count, self.record_bytes, self.numbers, column.size_bytes)
