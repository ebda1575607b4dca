"""The nodes of the tree of records, by number: where they lie, what is inside of what, and how they are found."""

cdef enum:
    NONE = 0  # no node; the first one in use is 1
    ROOT = 1

# What is in the place of the node around it, of nodes that hold others; their keys say what for.
cdef uint32_t AWAITED = 0xFFFFFFFF
cdef uint32_t HELD = 0xFFFFFFFE
cdef uint32_t NODES_AT_MOST = 0xFFFFFF00



# What the keys are multiplied by where they are hashed.
cdef uint64_t[KEYS] ODD = [
    0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5
]


cdef struct Node:
    uint32_t outer
    uint32_t next_in_chain  # of a spare one: the next spare one
    uint32_t first_inner
    uint32_t next_inner
    uint64_t keys[KEYS]
    uint64_t name
    uint64_t figures[FIGURE_COUNT]
    uint64_t calls_before  # as many calls and so much wall time may be in OTHER of it
    uint64_t wall_before
    Counts walls
    Counts cpus


cdef class Nodes:
    """Nodes, and hash chains over all of them by what they are inside of, their keys and their name."""

    cdef Node *nodes
    cdef size_t room
    cdef size_t used
    cdef uint32_t spare
    cdef uint32_t *chains
    cdef size_t chain_count  # a power of two
    cdef size_t linked  # nodes in chains
    cdef uint32_t last  # one that is remembered, unless it has moved

    def __cinit__(self):
        self.room = 1024
        self.chain_count = 1024
        self.nodes = <Node *>calloc(self.room, sizeof(Node))
        self.chains = <uint32_t *>calloc(self.chain_count, sizeof(uint32_t))
        if self.nodes == NULL or self.chains == NULL:
            raise MemoryError
        self.used = ROOT + 1

    def __dealloc__(self):
        cdef size_t i
        if self.nodes != NULL:
            for i in range(self.used):
                free(self.nodes[i].walls.numbers)
                free(self.nodes[i].cpus.numbers)
        free(self.nodes)
        free(self.chains)

    @final
    cdef int copy_nodes(self, Nodes other) except -1:
        """Have the same nodes as another one, in the place of one's own."""
        cdef size_t i
        cdef Node *nodes = <Node *>malloc(other.room * sizeof(Node))
        cdef uint32_t *chains = <uint32_t *>malloc(other.chain_count * sizeof(uint32_t))
        if nodes == NULL or chains == NULL:
            free(nodes)
            free(chains)
            raise MemoryError
        free(self.nodes)
        free(self.chains)
        self.nodes = nodes
        self.chains = chains
        memcpy(chains, other.chains, other.chain_count * sizeof(uint32_t))
        memcpy(nodes, other.nodes, other.used * sizeof(Node))
        for i in range(other.used):
            nodes[i].walls.numbers = nodes[i].cpus.numbers = NULL
        self.room = other.room
        self.used = other.used
        self.chain_count = other.chain_count
        self.spare = other.spare
        self.linked = other.linked
        for i in range(other.used):
            copy_counts(&nodes[i].walls, &other.nodes[i].walls)
            copy_counts(&nodes[i].cpus, &other.nodes[i].cpus)
        return 0

    cdef inline bint is_like(self, uint32_t number, const uint64_t *keys, uint64_t name) noexcept nogil:
        cdef const uint64_t *own = self.nodes[number].keys
        return (
            own[0] == keys[0]
            and own[1] == keys[1]
            and own[2] == keys[2]
            and own[3] == keys[3]
            and own[4] == keys[4]
            and self.nodes[number].name == name
        )

    cdef inline size_t chain_of(self, uint32_t outer, const uint64_t *keys, uint64_t name) noexcept nogil:
        cdef uint64_t hash = outer + name * <uint64_t>0x9E3779B97F4A7C15
        cdef int i
        for i in range(KEYS):  # none waits for the one before it
            hash += (keys[i] + 1) * ODD[i]
        hash = (hash ^ hash >> 32) * <uint64_t>0x9E3779B97F4A7C15
        return <size_t>(hash >> 29 & (self.chain_count - 1))

    @final
    cdef uint32_t find(self, uint32_t outer, const uint64_t *keys, uint64_t name) noexcept nogil:
        cdef uint32_t i = self.chains[self.chain_of(outer, keys, name)]
        while i and (self.nodes[i].outer != outer or not self.is_like(i, keys, name)):
            i = self.nodes[i].next_in_chain
        return i

    cdef inline void put(self, uint32_t into, uint32_t number) noexcept nogil:
        self.nodes[number].outer = into
        self.nodes[number].next_inner = self.nodes[into].first_inner
        self.nodes[into].first_inner = number

    @final
    cdef uint32_t find_holder(self, uint32_t what, uint64_t thread, uint64_t call) noexcept nogil:
        cdef uint64_t keys[KEYS]
        cdef uint32_t i
        keys[0], keys[1], keys[2], keys[3], keys[4] = thread, call, 0, 0, 0
        # Holders have a name in their turn, which is no part of what they are found by.
        i = self.chains[self.chain_of(what, keys, 0)]
        while i and (self.nodes[i].outer != what or self.nodes[i].keys[0] != thread or self.nodes[i].keys[1] != call):
            i = self.nodes[i].next_in_chain
        return i

    @final
    cdef uint32_t make_holder(self, uint32_t what, uint64_t thread, uint64_t call) except 0 nogil:
        """What holds the records of a call that has not come, or of the transaction that a thread is in."""
        cdef uint32_t i = self.take()
        self.nodes[i].keys[0] = thread
        self.nodes[i].keys[1] = call
        self.nodes[i].outer = what
        self.link(i)
        return i

    @final
    cdef list inners(self, uint32_t number):
        cdef uint32_t i = self.nodes[number].first_inner
        found = []
        while i:
            found.append(i)
            i = self.nodes[i].next_inner
        return found

    cdef inline size_t own_chain(self, uint32_t number) noexcept nogil:
        cdef Node *node = &self.nodes[number]
        cdef bint is_holder = node.outer == AWAITED or node.outer == HELD
        return self.chain_of(node.outer, node.keys, 0 if is_holder else node.name)

    @final
    cdef int link(self, uint32_t number) except -1 nogil:
        """Make a node one that is found."""
        cdef size_t chain
        if self.linked >= self.chain_count:
            self.lengthen()
        chain = self.own_chain(number)
        self.nodes[number].next_in_chain = self.chains[chain]
        self.chains[chain] = number
        self.linked += 1
        return 0

    @final
    cdef void unlink(self, uint32_t number) noexcept nogil:
        """Make a node one that is not found; it may move, or be given back."""
        cdef uint32_t *place = &self.chains[self.own_chain(number)]
        while place[0] != number:
            place = &self.nodes[place[0]].next_in_chain
        place[0] = self.nodes[number].next_in_chain
        self.linked -= 1
        self.last = NONE

    @final
    cdef int lengthen(self) except -1 nogil:
        """Four times the chains. Raises MemoryError; everything is as before then."""
        cdef size_t chain, old_count = self.chain_count
        cdef uint32_t i, following
        cdef uint32_t *old = self.chains
        cdef uint32_t *chains = <uint32_t *>calloc(old_count * 4, sizeof(uint32_t))
        if chains == NULL:
            with gil:
                raise MemoryError
        self.chains = chains
        self.chain_count = old_count * 4
        for chain in range(old_count):
            i = old[chain]
            while i:
                following = self.nodes[i].next_in_chain
                self.nodes[i].next_in_chain = chains[self.own_chain(i)]
                chains[self.own_chain(i)] = i
                i = following
        free(old)
        return 0

    @final
    cdef uint32_t take(self) except 0 nogil:
        """A node that is not in use, empty. Raises MemoryError."""
        cdef uint32_t i
        cdef Node *nodes
        if self.spare:
            i = self.spare
            self.spare = self.nodes[i].next_in_chain
        else:
            if self.used == self.room:
                nodes = <Node *>realloc(self.nodes, self.room * 2 * sizeof(Node)) if self.room < NODES_AT_MOST else NULL
                if nodes == NULL:
                    with gil:
                        raise MemoryError
                self.nodes = nodes
                self.room *= 2
            i = <uint32_t>self.used
            self.used += 1
        memset(&self.nodes[i], 0, sizeof(Node))
        return i

    @final
    cdef void give_back(self, uint32_t number) noexcept nogil:
        free(self.nodes[number].walls.numbers)
        free(self.nodes[number].cpus.numbers)
        memset(&self.nodes[number], 0, sizeof(Node))
        self.nodes[number].next_in_chain = self.spare
        self.spare = number
