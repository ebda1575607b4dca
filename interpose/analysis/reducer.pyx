# cython: boundscheck=False, wraparound=False, cdivision=True
"""The compiled reducer: the same sums as `interpose.analysis.reduce.PlainReducer`, from the same bytes."""

from cython cimport final
from libc.stdint cimport uint32_t, uint64_t
from libc.stdlib cimport calloc, free, realloc
from libc.string cimport memcpy, memset

from interpose.analysis.sums import KEYS_AT_MOST, LATEST_NS, LONGEST_NS, MEASURED, MOST, UNSETTLED_AT_MOST

cdef enum:
    KEYS = 4

cdef enum:
    START, WALL, CPU, INNER_WALL, INNER_CPU, BYTES, PARENT, ERROR, CALL, THREAD, FIELDS

cdef enum:
    CALLS, ERRORS, WALL_SUM, CPU_SUM, SELF_WALL, SELF_CPU, BYTES_SUM, TOP_CPU, FIRST, LAST, SUMS

assert KEYS_AT_MOST == KEYS
assert MEASURED == (
    "start_ns", "wall_ns", "cpu_ns", "inner_wall_ns", "inner_cpu_ns", "bytes", "parent", "error", "call", "thread"
)

cdef uint64_t most = MOST
cdef uint64_t longest_ns = LONGEST_NS
cdef uint64_t latest_ns = LATEST_NS

cdef enum:
    CHAINS = 1 << 16

cdef size_t NO_SLOT = <size_t>-1


cdef struct Place:
    size_t offset
    int size_bytes  # 0: the record does not have the field


cdef struct Slot:
    uint64_t keys[KEYS]
    uint64_t sums[SUMS]
    uint64_t group


cdef struct Inner:
    # What calls of one slot took inside a call that has not come; with NO_SLOT, that there are such, and the first.
    uint64_t thread
    uint64_t call
    size_t slot
    uint64_t wall
    uint64_t cpu
    size_t next_in_chain  # numbers of others, or 0
    size_t next_of_call


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


cdef inline size_t chain_of(uint64_t thread, uint64_t call, size_t slot) noexcept nogil:
    cdef uint64_t hash = (thread * <uint64_t>0x9E3779B97F4A7C15) ^ (call * <uint64_t>0xC2B2AE3D27D4EB4F)
    hash = (hash ^ <uint64_t>slot) * <uint64_t>0x9E3779B97F4A7C15
    return <size_t>((hash ^ hash >> 29) & (CHAINS - 1))


@final
cdef class Unsettled:
    """What calls took that were made inside others which have not come, by the outer call and the slot."""

    cdef size_t *chains
    cdef Inner *inners  # from 1
    cdef size_t used
    cdef size_t spare
    cdef size_t count  # of those with a slot
    cdef size_t most

    def __cinit__(self, size_t most):
        self.most = most
        self.chains = <size_t *>calloc(CHAINS, sizeof(size_t))
        # For each a first one at most, and one more while the most is passed.
        self.inners = <Inner *>calloc(2 * most + 4, sizeof(Inner))
        if self.chains == NULL or self.inners == NULL:
            raise MemoryError

    def __dealloc__(self):
        free(self.chains)
        free(self.inners)

    cdef size_t find(self, uint64_t thread, uint64_t call, size_t slot) noexcept nogil:
        cdef size_t i = self.chains[chain_of(thread, call, slot)]
        while i and (self.inners[i].thread != thread or self.inners[i].call != call or self.inners[i].slot != slot):
            i = self.inners[i].next_in_chain
        return i

    cdef size_t find_or_take(self, uint64_t thread, uint64_t call, size_t slot) noexcept nogil:
        cdef size_t chain, i = self.find(thread, call, slot)
        if i:
            return i
        if self.spare:
            i = self.spare
            self.spare = self.inners[i].next_in_chain
        else:
            self.used += 1
            i = self.used
        chain = chain_of(thread, call, slot)
        self.inners[i] = Inner(thread, call, slot, 0, 0, self.chains[chain], 0)
        self.chains[chain] = i
        return i

    cdef void give_back(self, size_t i) noexcept nogil:
        cdef size_t *place = &self.chains[chain_of(self.inners[i].thread, self.inners[i].call, self.inners[i].slot)]
        while place[0] != i:
            place = &self.inners[place[0]].next_in_chain
        place[0] = self.inners[i].next_in_chain
        self.inners[i].slot = NO_SLOT
        self.inners[i].next_in_chain = self.spare
        self.spare = i

    cdef void put(self, uint64_t thread, uint64_t call, size_t slot, uint64_t wall, uint64_t cpu) noexcept nogil:
        cdef size_t first, i = self.find(thread, call, slot)
        if i == 0:
            first = self.find_or_take(thread, call, NO_SLOT)
            i = self.find_or_take(thread, call, slot)
            self.inners[i].next_of_call = self.inners[first].next_of_call
            self.inners[first].next_of_call = i
            self.count += 1
        add(&self.inners[i].wall, wall)
        add(&self.inners[i].cpu, cpu)

    cdef size_t take_out(self, uint64_t thread, uint64_t call) noexcept nogil:
        """The first of what was inside a call, all of which is to be given back; 0 where there was nothing."""
        cdef size_t i, first = self.find(thread, call, NO_SLOT)
        if first == 0:
            return 0
        i = self.inners[first].next_of_call
        self.give_back(first)
        return i

    cdef void clear(self) noexcept nogil:
        memset(self.chains, 0, CHAINS * sizeof(size_t))
        memset(self.inners, 0, (self.used + 1) * sizeof(Inner))
        self.used = self.spare = self.count = 0


@final
cdef class CompiledReducer:
    """Sums of events by the fields `by`; as PlainReducer."""

    cdef Place places[FIELDS]
    cdef Place key_places[KEYS]
    cdef int key_count
    cdef size_t record_bytes
    cdef Slot *slots  # in the order in which their keys came
    cdef size_t filled
    cdef size_t *index  # by the keys, numbers of slots from 1
    cdef size_t room
    cdef object group_of
    cdef bint has_groups
    cdef Unsettled unsettled
    cdef uint64_t impossible_count

    def __cinit__(self, layout, by, group_of=None, unsettled_at_most=UNSETTLED_AT_MOST):
        if len(by) > KEYS:
            raise ValueError(f"at most {KEYS} keys")
        narrow = layout.unsigned((*MEASURED, *by))
        self.record_bytes = narrow.record_bytes
        self.key_count = len(by)
        for i, name in enumerate(MEASURED):
            self.places[i] = self.place_of(narrow, name)
        for i in range(KEYS):
            self.key_places[i] = self.place_of(narrow, by[i] if i < len(by) else None)
        self.group_of = group_of
        self.has_groups = group_of is not None
        self.unsettled = Unsettled(unsettled_at_most)
        self.room = 1024
        self.slots = <Slot *>calloc(self.room // 2, sizeof(Slot))
        self.index = <size_t *>calloc(self.room, sizeof(size_t))
        if self.slots == NULL or self.index == NULL:
            raise MemoryError

    def __dealloc__(self):
        free(self.slots)
        free(self.index)

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
        with nogil:
            self.add_all(first, count)

    def sums(self):
        """The sums of each key, in no order: a dictionary from keys to the numbers of `Sums`."""
        cdef size_t i
        cdef Slot *slot
        self.settle()
        found = {}
        for i in range(self.filled):
            slot = &self.slots[i]
            keys = tuple([slot.keys[k] for k in range(self.key_count)])
            found[keys] = tuple([slot.sums[s] for s in range(SUMS)])
        return found

    cdef int add_all(self, const unsigned char *record, size_t count) except -1 nogil:
        cdef size_t slot = NO_SLOT
        cdef uint64_t keys[KEYS]
        cdef size_t i
        cdef int k
        for i in range(count):
            for k in range(KEYS):
                keys[k] = load(record, self.key_places[k])
            if self.is_impossible(record):
                self.impossible_count += 1
            else:
                if slot == NO_SLOT or not same(self.slots[slot].keys, keys):
                    slot = self.slot_of(keys)
                self.add_one(slot, record)
            record += self.record_bytes
        return 0

    cdef inline bint is_impossible(self, const unsigned char *record) noexcept nogil:
        cdef uint64_t wall = load(record, self.places[WALL])
        return (
            wall > longest_ns
            or load(record, self.places[CPU]) > wall
            or load(record, self.places[START]) > latest_ns
        )

    cdef inline void add_one(self, size_t slot, const unsigned char *record) noexcept nogil:
        cdef uint64_t *sums = self.slots[slot].sums
        cdef uint64_t start = load(record, self.places[START])
        cdef uint64_t wall = load(record, self.places[WALL])
        cdef uint64_t cpu = load(record, self.places[CPU])
        cdef uint64_t inner_wall = load(record, self.places[INNER_WALL])
        cdef uint64_t inner_cpu = load(record, self.places[INNER_CPU])
        cdef uint64_t parent = load(record, self.places[PARENT])
        sums[CALLS] += 1
        sums[ERRORS] += load(record, self.places[ERROR]) != 0
        add(&sums[SELF_WALL], wall - inner_wall if wall > inner_wall else 0)
        add(&sums[SELF_CPU], cpu - inner_cpu if cpu > inner_cpu else 0)
        add(&sums[BYTES_SUM], load(record, self.places[BYTES]))
        if parent == 0:
            add(&sums[TOP_CPU], cpu)
        if sums[CALLS] == 1 or start < sums[FIRST]:
            sums[FIRST] = start
        if start + wall > sums[LAST]:
            sums[LAST] = start + wall
        if parent or self.unsettled.count:
            self.put_inside(slot, record, parent, wall, cpu)
        else:
            add(&sums[WALL_SUM], wall)
            add(&sums[CPU_SUM], cpu)

    cdef void put_inside(
        self, size_t slot, const unsigned char *record, uint64_t parent, uint64_t wall, uint64_t cpu
    ) noexcept nogil:
        """Put a call and what was inside it into its outer one, without what was of its own group."""
        cdef uint64_t thread = load(record, self.places[THREAD])
        cdef size_t i = self.unsettled.take_out(thread, load(record, self.places[CALL]))
        cdef Inner inner
        while i:
            inner = self.unsettled.inners[i]
            self.unsettled.give_back(i)
            self.unsettled.count -= 1
            if self.slots[inner.slot].group != self.slots[slot].group:
                self.put(thread, parent, inner.slot, inner.wall, inner.cpu)
            i = inner.next_of_call
        self.put(thread, parent, slot, wall, cpu)
        if self.unsettled.count > self.unsettled.most:
            self.settle()

    cdef inline void put(self, uint64_t thread, uint64_t call, size_t slot, uint64_t wall, uint64_t cpu) noexcept nogil:
        """Put calls of `slot` into an outer call, or count them where there is none."""
        if call:
            self.unsettled.put(thread, call, slot, wall, cpu)
        else:
            add(&self.slots[slot].sums[WALL_SUM], wall)
            add(&self.slots[slot].sums[CPU_SUM], cpu)

    cdef void settle(self) noexcept nogil:
        """Count all that still waits for its outer call."""
        cdef size_t i
        cdef Inner *inner
        if self.unsettled.count == 0:
            return
        for i in range(1, self.unsettled.used + 1):
            inner = &self.unsettled.inners[i]
            if inner.slot != NO_SLOT:
                self.put(0, 0, inner.slot, inner.wall, inner.cpu)
        self.unsettled.clear()

    cdef Py_ssize_t slot_of(self, const uint64_t *keys) except -1 nogil:
        """The number of the slot of `keys`, which is taken into use where it was not."""
        cdef size_t i = mixed(keys) & (self.room - 1)
        cdef Slot *slot
        while self.index[i]:
            if same(self.slots[self.index[i] - 1].keys, keys):
                return <Py_ssize_t>self.index[i] - 1
            i = (i + 1) & (self.room - 1)
        if self.filled * 2 >= self.room:
            self.grow()
            i = self.free_place(keys)
        slot = &self.slots[self.filled]
        memset(slot, 0, sizeof(Slot))
        memcpy(slot.keys, keys, sizeof(uint64_t) * KEYS)
        slot.group = self.filled
        if self.has_groups:
            slot.group = self.group_number(keys)
        self.filled += 1
        self.index[i] = self.filled
        return <Py_ssize_t>self.filled - 1

    cdef uint64_t group_number(self, const uint64_t *keys) except? 0 with gil:
        return self.group_of(tuple([keys[k] for k in range(self.key_count)]))

    cdef size_t free_place(self, const uint64_t *keys) noexcept nogil:
        """Where in the index `keys` will stand, which are not in it."""
        cdef size_t i = mixed(keys) & (self.room - 1)
        while self.index[i]:
            i = (i + 1) & (self.room - 1)
        return i

    cdef int grow(self) except -1 nogil:
        """Twice the room. Raises MemoryError; everything is as before then."""
        cdef size_t i
        cdef Slot *slots
        cdef size_t *index = <size_t *>calloc(self.room * 2, sizeof(size_t))
        if index == NULL:
            with gil:
                raise MemoryError
        slots = <Slot *>realloc(self.slots, self.room * sizeof(Slot))
        if slots == NULL:
            free(index)
            with gil:
                raise MemoryError
        self.slots = slots
        free(self.index)
        self.index = index
        self.room *= 2
        for i in range(self.filled):
            self.index[self.free_place(self.slots[i].keys)] = i + 1
        return 0
