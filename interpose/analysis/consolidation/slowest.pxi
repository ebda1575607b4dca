"""The slowest events, as they were recorded."""

cdef struct Slow:
    uint64_t wall
    uint64_t order  # which event it was


@final
cdef class Slowest:
    """The records of the slowest events, at most so many."""

    cdef Slow *found  # with their records in `records`, in no order
    cdef unsigned char *records
    cdef size_t record_bytes
    cdef size_t count
    cdef size_t at_most
    cdef size_t fastest  # the place of the fastest of them

    def __cinit__(self, size_t at_most, size_t record_bytes):
        self.at_most = at_most
        self.record_bytes = record_bytes
        self.found = <Slow *>calloc(at_most + 1, sizeof(Slow))
        self.records = <unsigned char *>calloc(at_most + 1, record_bytes)
        if self.found == NULL or self.records == NULL:
            raise MemoryError

    def __dealloc__(self):
        free(self.found)
        free(self.records)

    cdef void copy(self, Slowest other) noexcept:
        """Have those of another one, which has as many at most."""
        self.count = other.count
        self.fastest = other.fastest
        memcpy(self.found, other.found, other.count * sizeof(Slow))
        memcpy(self.records, other.records, other.count * other.record_bytes)

    cdef list in_order(self):
        """The records, the slowest first; of two as slow, the one that came first."""
        found = [(self.found[i].wall, -<object>self.found[i].order, i) for i in range(self.count)]
        return [
            self.records[i * self.record_bytes : (i + 1) * self.record_bytes] for _, _, i in sorted(found, reverse=True)
        ]

    cdef inline bint has_room_for(self, uint64_t wall) noexcept nogil:
        return self.at_most > 0 and (self.count < self.at_most or wall > self.found[self.fastest].wall)

    cdef void keep(self, uint64_t wall, uint64_t order, const unsigned char *record) noexcept nogil:
        """Keep an event that is slower than the fastest of those kept."""
        cdef size_t i, place = self.count
        if place == self.at_most:
            place = self.fastest
        else:
            self.count += 1
        self.found[place].wall = wall
        self.found[place].order = order
        memcpy(self.records + place * self.record_bytes, record, self.record_bytes)
        self.fastest = 0
        for i in range(1, self.count):
            if self.is_before(i, self.fastest):
                self.fastest = i

    cdef inline bint is_before(self, size_t one, size_t other) noexcept nogil:
        """Whether the event in the place `one` gives way before the one in `other`."""
        cdef const Slow *mine = &self.found[one]
        cdef const Slow *others = &self.found[other]
        return mine.wall < others.wall or (mine.wall == others.wall and mine.order > others.order)
