# cython: boundscheck=False, wraparound=False, cdivision=True
"""The compiled reducer: the same sums as `interpose.analysis.reduce.PlainReducer`, from the same bytes."""

from libc.stdint cimport uint32_t, uint64_t
from libc.stdlib cimport calloc, free
from libc.string cimport memcpy

from interpose.analysis.sums import KEYS_AT_MOST, LATEST_NS, LONGEST_NS, MEASURED, MOST

cdef enum:
    KEYS = 4

cdef enum:
    START, WALL, CPU, INNER_WALL, INNER_CPU, BYTES, PARENT, ERROR, FIELDS

cdef enum:
    CALLS, ERRORS, WALL_SUM, CPU_SUM, SELF_WALL, SELF_CPU, BYTES_SUM, TOP_CPU, FIRST, LAST, SUMS

assert KEYS_AT_MOST == KEYS
assert MEASURED == (
    "start_ns", "wall_ns", "cpu_ns", "inner_wall_ns", "inner_cpu_ns", "bytes", "parent", "error"
)

cdef uint64_t most = MOST
cdef uint64_t longest_ns = LONGEST_NS
cdef uint64_t latest_ns = LATEST_NS


cdef struct Place:
    size_t offset
    int size_bytes  # 0: the record does not have the field


cdef struct Slot:
    uint64_t keys[KEYS]
    uint64_t sums[SUMS]


cdef inline uint64_t load(const unsigned char *record, Place place) noexcept nogil:
    cdef uint32_t narrow
    cdef uint64_t wide
    if place.size_bytes == 4:
        memcpy(&narrow, record + place.offset, 4)
        return narrow
    if place.size_bytes == 8:
        memcpy(&wide, record + place.offset, 8)
        return wide
    return 0


cdef inline void add(uint64_t *total, uint64_t value) noexcept nogil:
    """Add without passing `most`: neither term is larger, so nothing wraps, and the order does not matter."""
    if value > most:
        value = most
    total[0] += value
    if total[0] > most:
        total[0] = most


cdef inline uint64_t mixed(const uint64_t *keys) noexcept nogil:
    cdef uint64_t hash = 0
    cdef int i
    for i in range(KEYS):
        hash = (hash ^ keys[i]) * <uint64_t>0x9E3779B97F4A7C15
        hash ^= hash >> 29
    return hash


cdef inline bint same(const uint64_t *a, const uint64_t *b) noexcept nogil:
    return a[0] == b[0] and a[1] == b[1] and a[2] == b[2] and a[3] == b[3]


cdef class CompiledReducer:
    """Sums of events by the fields `by`; as PlainReducer."""

    cdef Place places[FIELDS]
    cdef Place key_places[KEYS]
    cdef int key_count
    cdef size_t record_bytes
    cdef Slot *slots
    cdef size_t room
    cdef size_t filled
    cdef uint64_t impossible_count

    def __cinit__(self, layout, by):
        if len(by) > KEYS:
            raise ValueError(f"at most {KEYS} keys")
        narrow = layout.unsigned((*MEASURED, *by))
        self.record_bytes = narrow.record_bytes
        self.key_count = len(by)
        for i, name in enumerate(MEASURED):
            self.places[i] = self.place_of(narrow, name)
        for i in range(KEYS):
            self.key_places[i] = self.place_of(narrow, by[i] if i < len(by) else None)
        self.room = 1024
        self.slots = <Slot *>calloc(self.room, sizeof(Slot))
        if self.slots == NULL:
            raise MemoryError

    def __dealloc__(self):
        free(self.slots)

    cdef Place place_of(self, layout, name) except *:
        cdef Place place
        place.offset = 0
        place.size_bytes = 0
        field = layout.fields.get(name)
        if field is not None:
            if not 0 <= field.offset <= field.end <= layout.record_bytes:
                raise ValueError(f"field {name} at {field.offset}")
            place.offset = field.offset
            place.size_bytes = field.size_bytes
        return place

    @property
    def impossible(self):
        """Events left out because they cannot be."""
        return self.impossible_count

    def add(self, events):
        """Add each event in `events`, which must be whole records."""
        cdef const unsigned char[::1] bytes_given = events
        cdef size_t count = bytes_given.shape[0] // self.record_bytes
        if count == 0:
            return
        cdef const unsigned char *first = &bytes_given[0]
        cdef bint complete
        with nogil:
            complete = self.add_all(first, count)
        if not complete:
            raise MemoryError

    def sums(self):
        """The sums of each key, in no order: a dictionary from keys to the numbers of `Sums`."""
        cdef size_t i
        cdef Slot *slot
        found = {}
        for i in range(self.room):
            slot = &self.slots[i]
            if slot.sums[CALLS]:
                keys = tuple([slot.keys[k] for k in range(self.key_count)])
                found[keys] = tuple([slot.sums[s] for s in range(SUMS)])
        return found

    cdef bint add_all(self, const unsigned char *record, size_t count) noexcept nogil:
        """Add `count` records; False where memory ran out."""
        cdef Slot *slot = NULL
        cdef uint64_t keys[KEYS]
        cdef size_t i
        cdef int k
        for i in range(count):
            for k in range(KEYS):
                keys[k] = load(record, self.key_places[k])
            if self.is_impossible(record):
                self.impossible_count += 1
            else:
                if slot == NULL or not same(slot.keys, keys):
                    if self.filled * 2 >= self.room and not self.grow():
                        return False
                    slot = self.slot_of(keys)
                self.add_one(slot, record)
            record += self.record_bytes
        return True

    cdef inline bint is_impossible(self, const unsigned char *record) noexcept nogil:
        cdef uint64_t wall = load(record, self.places[WALL])
        return (
            wall > longest_ns
            or load(record, self.places[CPU]) > wall
            or load(record, self.places[START]) > latest_ns
        )

    cdef inline void add_one(self, Slot *slot, const unsigned char *record) noexcept nogil:
        cdef uint64_t *sums = slot.sums
        cdef uint64_t start = load(record, self.places[START])
        cdef uint64_t wall = load(record, self.places[WALL])
        cdef uint64_t cpu = load(record, self.places[CPU])
        cdef uint64_t inner_wall = load(record, self.places[INNER_WALL])
        cdef uint64_t inner_cpu = load(record, self.places[INNER_CPU])
        sums[CALLS] += 1
        sums[ERRORS] += load(record, self.places[ERROR]) != 0
        add(&sums[WALL_SUM], wall)
        add(&sums[CPU_SUM], cpu)
        add(&sums[SELF_WALL], wall - inner_wall if wall > inner_wall else 0)
        add(&sums[SELF_CPU], cpu - inner_cpu if cpu > inner_cpu else 0)
        add(&sums[BYTES_SUM], load(record, self.places[BYTES]))
        if load(record, self.places[PARENT]) == 0:
            add(&sums[TOP_CPU], cpu)
        if sums[CALLS] == 1 or start < sums[FIRST]:
            sums[FIRST] = start
        if start + wall > sums[LAST]:
            sums[LAST] = start + wall

    cdef Slot *slot_of(self, const uint64_t *keys) noexcept nogil:
        """The slot of `keys`, taken into use where it was not; there is always a free one."""
        cdef size_t i = mixed(keys) & (self.room - 1)
        while self.slots[i].sums[CALLS] and not same(self.slots[i].keys, keys):
            i = (i + 1) & (self.room - 1)
        if not self.slots[i].sums[CALLS]:
            memcpy(self.slots[i].keys, keys, sizeof(uint64_t) * KEYS)
            self.filled += 1
        return &self.slots[i]

    cdef bint grow(self) noexcept nogil:
        """Twice the room; False where memory ran out, and everything is as before."""
        cdef Slot *old = self.slots
        cdef size_t old_room = self.room
        cdef size_t i
        cdef Slot *grown = <Slot *>calloc(old_room * 2, sizeof(Slot))
        if grown == NULL:
            return False
        self.slots = grown
        self.room = old_room * 2
        self.filled = 0
        for i in range(old_room):
            if old[i].sums[CALLS]:
                memcpy(self.slot_of(old[i].keys), &old[i], sizeof(Slot))
        free(old)
        return True
