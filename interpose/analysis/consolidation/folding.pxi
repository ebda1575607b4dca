"""The records of consolidation, one inside of the other: how many there may be, and which become `(other)` beyond."""

cdef struct Pair:
    uint32_t into
    uint32_t given


cdef inline bint is_own_name(uint64_t name) noexcept nogil:
    """Whether the name of a transaction is a detail."""
    return name & ~other_detail == by_detail and name != (by_detail | other_detail)


cdef inline uint64_t calls_of(const Node *node) noexcept nogil:
    """How many calls a record may have had."""
    return min(node.figures[CALLS] + node.calls_before, most)


cdef inline uint64_t wall_of(const Node *node) noexcept nogil:
    """How much wall time a record may have had."""
    return min(node.figures[WALL_SUM] + node.wall_before, most)


cdef int descending(const void *first, const void *second) noexcept nogil:
    cdef uint64_t one = (<const uint64_t *>first)[0], other = (<const uint64_t *>second)[0]
    return (one < other) - (one > other)


cdef uint64_t largest_but(uint64_t *numbers, size_t count, size_t kept) noexcept nogil:
    """The largest but for so many, or the least; of one number or more, whose order changes."""
    qsort(numbers, count, sizeof(uint64_t), descending)
    return numbers[min(kept, count - 1)]


cdef class Records(Nodes):
    """Records by their keys, with their figures. Records with a detail are bounded, and so are all together."""

    cdef int detail_key  # which of the keys is the detail; -1: none
    cdef bint histograms
    cdef long long left  # records that may still be made
    cdef long long detailed_left  # of them with a detail
    cdef size_t kept  # of these for their calls, and as many for their time, when there are too many
    cdef uint64_t enough_calls  # with which a record was not kept
    cdef uint64_t enough_wall
    cdef bint full
    cdef Pair *pairs
    cdef size_t pair_room

    def __dealloc__(self):
        free(self.pairs)

    cdef inline bint is_detailed(self, const uint64_t *keys, uint64_t name) noexcept nogil:
        """Whether a record has a detail of its own."""
        cdef bint of_key = self.detail_key >= 0 and keys[self.detail_key] != 0 and keys[self.detail_key] != other_detail
        return of_key or is_own_name(name)

    @final
    cdef uint32_t node_of(self, uint32_t into, const uint64_t *keys, uint64_t name) except 0 nogil:
        """The record of `keys` inside of `into`; the one for all that is too much where there are too many."""
        cdef uint64_t nothing[KEYS]
        cdef uint64_t folded[KEYS]
        cdef uint32_t i = self.find(into, keys, name)
        if i:
            return i
        if self.is_detailed(keys, name):
            if self.detailed_left <= 0:
                self.fold()
            if self.detailed_left > 0 and self.left > 0:
                self.detailed_left -= 1
            else:
                memcpy(folded, keys, sizeof(folded))
                if self.detail_key >= 0 and folded[self.detail_key]:
                    folded[self.detail_key] = other_detail
                keys = folded
                name = (by_detail | other_detail) if is_own_name(name) else name
                i = self.find(into, keys, name)
                if i:
                    return i
        if self.left > 0:
            self.left -= 1
            return self.make(into, keys, name)
        self.full = True
        memset(nothing, 0, sizeof(nothing))
        i = self.find(ROOT, nothing, 0)
        if i:
            return i
        self.left -= 1
        return self.make(ROOT, nothing, 0)

    @final
    cdef uint32_t make(self, uint32_t into, const uint64_t *keys, uint64_t name) except 0 nogil:
        """A new record inside of `into`."""
        cdef uint32_t i = self.take()
        cdef Node *node = &self.nodes[i]
        memcpy(node.keys, keys, sizeof(uint64_t) * KEYS)
        node.name = name
        node.figures[FIRST] = node.figures[WALL_LEAST] = node.figures[CPU_LEAST] = most
        node.calls_before = self.enough_calls
        node.wall_before = self.enough_wall
        self.put(into, i)
        self.link(i)
        return i

    @final
    cdef int fold(self) except -1 nogil:
        """Have the records with details that have few calls and little time be OTHER: the deepest first, so that what
        is the same then does not depend on the order."""
        cdef uint32_t *around = <uint32_t *>malloc(self.used * sizeof(uint32_t))
        cdef unsigned char *few = <unsigned char *>calloc(self.used, 1)
        cdef size_t count
        try:
            if around == NULL or few == NULL:
                with gil:
                    raise MemoryError
            count = self.all_around(around)
            self.find_few(around, count, few)
            while count:
                count -= 1
                self.fold_inside(around[count], few)
        finally:
            free(around)
            free(few)
        return 0

    @final
    cdef size_t all_around(self, uint32_t *around) noexcept nogil:
        """All that holds others or is a record, each behind what is around it; returns how many."""
        cdef size_t count = 0, place = 0
        cdef uint32_t i
        for i in range(ROOT, <uint32_t>self.used):
            # Around nothing are what is in no use, and what holds the calls inside of the one that is being added.
            if self.nodes[i].outer in (AWAITED, HELD) or (self.nodes[i].outer == NONE and self.nodes[i].first_inner):
                around[count] = i
                count += 1
        while place < count:
            i = self.nodes[around[place]].first_inner
            while i:
                around[count] = i
                count += 1
                i = self.nodes[i].next_inner
            place += 1
        return count

    @final
    cdef int find_few(self, const uint32_t *around, size_t count, unsigned char *few) except -1 nogil:
        """Mark those that are not kept."""
        cdef uint64_t *calls = <uint64_t *>malloc((count + 1) * sizeof(uint64_t))
        cdef uint64_t *walls = <uint64_t *>malloc((count + 1) * sizeof(uint64_t))
        cdef size_t detailed = 0, place
        cdef Node *node
        try:
            if calls == NULL or walls == NULL:
                with gil:
                    raise MemoryError
            for place in range(count):
                node = &self.nodes[around[place]]
                if self.is_record(node) and self.is_detailed(node.keys, node.name):
                    calls[detailed] = calls_of(node)
                    walls[detailed] = wall_of(node)
                    few[around[place]] = 1
                    detailed += 1
            if detailed == 0:
                return 0
            self.enough_calls = largest_but(calls, detailed, self.kept)
            self.enough_wall = largest_but(walls, detailed, self.kept)
            for place in range(count):
                node = &self.nodes[around[place]]
                if calls_of(node) > self.enough_calls or wall_of(node) > self.enough_wall:
                    few[around[place]] = 0
        finally:
            free(calls)
            free(walls)
        return 0

    cdef inline bint is_record(self, const Node *node) noexcept nogil:
        return node.outer != NONE and node.outer != AWAITED and node.outer != HELD

    @final
    cdef int fold_inside(self, uint32_t around, const unsigned char *few) except -1 nogil:
        """Have those that are marked, of the records inside of one, be OTHER."""
        cdef uint32_t i = self.nodes[around].first_inner, following, folded = NONE
        self.nodes[around].first_inner = NONE
        while i:
            following = self.nodes[i].next_inner
            if few[i]:
                self.nodes[i].next_inner = folded
                folded = i
            else:
                self.put(around, i)
            i = following
        while folded:
            following = self.nodes[folded].next_inner
            self.fold_one(around, folded)
            folded = following
        return 0

    @final
    cdef int fold_one(self, uint32_t around, uint32_t number) except -1 nogil:
        cdef Node *node = &self.nodes[number]
        cdef uint32_t into
        self.unlink(number)
        self.detailed_left += 1
        if self.detail_key >= 0 and node.keys[self.detail_key]:
            node.keys[self.detail_key] = other_detail
        if is_own_name(node.name):
            node.name = by_detail | other_detail
        into = self.find(around, node.keys, node.name)
        if into == NONE:
            self.put(around, number)
            self.link(number)
        else:
            self.left += 1
            self.add_node(into, number)
            self.take_over(into, number)
            self.give_back(number)
        return 0

    @final
    cdef int take_over(self, uint32_t into, uint32_t given) except -1 nogil:
        """Have the records that are inside of `given`, which is left empty, inside of `into`; like ones become one."""
        cdef size_t pairs = 0
        cdef uint32_t i, following, mine
        cdef bint is_first = True
        while True:
            i = self.nodes[given].first_inner
            self.nodes[given].first_inner = NONE
            while i:
                following = self.nodes[i].next_inner
                self.unlink(i)
                mine = self.find(into, self.nodes[i].keys, self.nodes[i].name)
                if mine == NONE:
                    self.put(into, i)
                    self.link(i)
                else:
                    self.add_node(mine, i)
                    self.left += 1
                    self.detailed_left += self.is_detailed(self.nodes[i].keys, self.nodes[i].name)
                    if self.nodes[i].first_inner:
                        self.push(pairs, mine, i)
                        pairs += 1
                    else:
                        self.give_back(i)
                i = following
            if not is_first:
                self.give_back(given)
            is_first = False
            if pairs == 0:
                return 0
            pairs -= 1
            into, given = self.pairs[pairs].into, self.pairs[pairs].given

    @final
    cdef int push(self, size_t place, uint32_t into, uint32_t given) except -1 nogil:
        cdef Pair *pairs
        cdef size_t room
        if place >= self.pair_room:
            room = self.pair_room * 2 if self.pair_room else 64
            pairs = <Pair *>realloc(self.pairs, room * sizeof(Pair))
            if pairs == NULL:
                with gil:
                    raise MemoryError
            self.pairs = pairs
            self.pair_room = room
        self.pairs[place].into = into
        self.pairs[place].given = given
        return 0

    @final
    cdef int add_node(self, uint32_t into, uint32_t given) except -1 nogil:
        """Add the figures of a record to those of one that is like it."""
        cdef uint64_t *mine = self.nodes[into].figures
        cdef uint64_t *other = self.nodes[given].figures
        cdef int i
        at_least(&self.nodes[into].calls_before, self.nodes[given].calls_before)
        at_least(&self.nodes[into].wall_before, self.nodes[given].wall_before)
        for i in range(FIGURE_COUNT):
            if i == FIRST or i == WALL_LEAST or i == CPU_LEAST:
                at_least(&mine[i], other[i])
            elif i == LAST or i == WALL_MOST or i == CPU_MOST:
                at_most(&mine[i], other[i])
            else:
                add(&mine[i], other[i])
        if self.histograms:
            merge_counts(&self.nodes[into].walls, &self.nodes[given].walls)
            merge_counts(&self.nodes[into].cpus, &self.nodes[given].cpus)
        return 0
