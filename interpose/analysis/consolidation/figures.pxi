"""Sums that do not wrap, and histograms of times that grow where they are needed."""

cdef struct Counts:
    # A part of a histogram: `room` buckets from `first` on.
    uint32_t first
    uint32_t room
    uint64_t *numbers


cdef inline void add(uint64_t *total, uint64_t value) noexcept nogil:
    """Add without passing `most`: neither term is larger, so nothing wraps, and the order does not matter."""
    if value > most:
        value = most
    total[0] += value
    if total[0] > most:
        total[0] = most


cdef inline void at_least(uint64_t *least, uint64_t value) noexcept nogil:
    if value < least[0]:
        least[0] = value


cdef inline void at_most(uint64_t *largest, uint64_t value) noexcept nogil:
    if value > largest[0]:
        largest[0] = value


cdef extern from *:
    """
    static inline unsigned bit_length(uint64_t number) { return number ? 64 - __builtin_clzll(number) : 0; }
    """
    unsigned bit_length(uint64_t number) noexcept nogil


cdef inline uint32_t bucket_of(uint64_t time_ns) noexcept nogil:
    cdef unsigned length = bit_length(time_ns)
    cdef unsigned coarse = length - FINE_BITS - 1 if length > FINE_BITS + 1 else 0
    return <uint32_t>((coarse << FINE_BITS) + (time_ns >> coarse))


cdef int count_in(Counts *counts, uint32_t bucket, uint64_t number) except -1 nogil:
    """Count `number` more in a bucket. Raises MemoryError; everything is as before then."""
    cdef uint32_t first, beyond, slack
    cdef uint64_t *numbers
    if counts.room == 0 or bucket < counts.first or bucket >= counts.first + counts.room:
        first, beyond = bucket, bucket + 1
        if counts.room:
            slack = max(counts.room // 2, 8)
            first = min(counts.first, bucket - min(bucket, slack) if bucket < counts.first else bucket)
            beyond = max(counts.first + counts.room, bucket + 1 + slack if bucket >= counts.first else bucket + 1)
        numbers = <uint64_t *>calloc(beyond - first, sizeof(uint64_t))
        if numbers == NULL:
            with gil:
                raise MemoryError
        if counts.room:
            memcpy(numbers + (counts.first - first), counts.numbers, counts.room * sizeof(uint64_t))
            free(counts.numbers)
        counts.first = first
        counts.room = beyond - first
        counts.numbers = numbers
    counts.numbers[bucket - counts.first] += number
    return 0


cdef inline int merge_counts(Counts *counts, Counts *given) except -1 nogil:
    cdef uint32_t i
    for i in range(given.room):
        if given.numbers[i]:
            count_in(counts, given.first + i, given.numbers[i])
    return 0


cdef int copy_counts(Counts *counts, Counts *given) except -1:
    if given.room:
        counts.numbers = <uint64_t *>malloc(given.room * sizeof(uint64_t))
        if counts.numbers == NULL:
            raise MemoryError
        memcpy(counts.numbers, given.numbers, given.room * sizeof(uint64_t))
    return 0


cdef dict counted(Counts *counts):
    return {counts.first + i: counts.numbers[i] for i in range(counts.room) if counts.numbers[i]}
