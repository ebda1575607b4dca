# cython: boundscheck=False, wraparound=False, cdivision=True
"""The compiled consolidator: the records of `interpose.analysis.consolidation.consolidate.PlainConsolidator`, from the same bytes."""

import copy

from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from cython cimport final
from libc.stdint cimport int64_t, uint16_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free, malloc, qsort, realloc
from libc.string cimport memcpy, memset

from interpose.analysis.consolidation import histogram
from interpose.analysis.transactions import tracking
from interpose.analysis.consolidation.sums import (
    DETAILS_AT_MOST,
    FIGURES,
    KEYS_AT_MOST,
    MEASURED,
    MOST,
    RECORDS_AT_MOST,
    WAITING_AT_MOST,
)
from interpose.analysis.transactions.tracking import Between, Outermost, is_pseudo
from interpose.experiments.format.consolidated import OTHER, Found
from interpose.experiments.format.possible import LATEST_NS, LONGEST_NS

cdef enum:
    KEYS = 5

cdef enum:
    START, WALL, CPU, INNER_WALL, INNER_CPU, BYTES, THREAD, CALL, PARENT, INTRINSIC, STACK, DETAIL, ERROR, TASK, START_CPU
    FIELDS

cdef enum:
    CALLS, ERRORS, WALL_SUM, CPU_SUM, SELF_WALL, SELF_CPU, BYTES_SUM, FIRST, LAST
    WALL_LEAST, WALL_MOST, CPU_LEAST, CPU_MOST, THINK_WALL, THINK_CPU, FIGURE_COUNT

# What a record that holds others tells of them, in the place of figures.
cdef enum:
    BITS, TOLD_WALL, TOLD_CPU, TOLD_STACK

cdef enum:
    READS = 1, BY_KEYS = 2, SPAN = 4, MARKED = 8, BEGINS = 16, ENDS = 32, BUSY = 64, NAMES = 128
    ASKS = 256, AFRESH = 512, DROPS = 1024, RELEASES = 2048, WAITS = 4096
    DECIDES = READS | BEGINS | ENDS | NAMES | AFRESH | DROPS  # the tracker is asked at each such call
    OF_TASKS = ASKS | ENDS | AFRESH | DROPS  # what counts of what a call of a task means for transactions

cdef enum:
    FINE_BITS = 6
    ROLES_AT_MOST = 1 << 20
    DETAILS_KNOWN_AT_MOST = 1 << 22

cdef enum:
    GOES_ON = 1  # a statement that is asked for, and means nothing for transactions; no bit that one may have

assert KEYS_AT_MOST == KEYS
assert len(MEASURED) == FIELDS and MEASURED.index("start_cpu_ns") == START_CPU and MEASURED.index("task") == TASK
assert len(FIGURES) == FIGURE_COUNT and FIGURES.index("wall_least_ns") == WALL_LEAST
assert histogram.FINE_BITS == FINE_BITS
assert [READS, BY_KEYS, SPAN, MARKED, BEGINS, ENDS, BUSY, NAMES, ASKS, AFRESH, DROPS, RELEASES, WAITS, DECIDES] == [
    getattr(tracking, name)
    for name in "READS KEYS SPAN MARKED BEGINS ENDS BUSY NAMES ASKS AFRESH DROPS RELEASES WAITS DECIDES".split()
]

cdef uint64_t most = MOST
cdef uint64_t longest_ns = LONGEST_NS
cdef uint64_t latest_ns = LATEST_NS
cdef uint64_t by_detail = tracking.BY_DETAIL
cdef uint64_t by_intrinsic = tracking.BY_INTRINSIC
cdef uint64_t by_stack = tracking.BY_STACK
cdef uint64_t number_bits = tracking.NUMBER
cdef uint64_t idle = tracking.IDLE
cdef uint64_t other_detail = OTHER

cdef struct Event:
    # What is read of an event: its fields, 0 for those that its record does not have, and its keys.
    uint64_t fields[FIELDS + 1]  # the last one is always 0: what is no key
    uint64_t keys[KEYS]


cdef packed struct Usual:
    # How experiments of this version pack an event, which is read several times as fast as one packed otherwise.
    uint64_t start_ns
    uint64_t start_cpu_ns
    uint64_t wall_ns
    uint64_t cpu_ns
    uint64_t inner_wall_ns
    uint64_t inner_cpu_ns
    uint64_t bytes
    uint32_t thread
    uint32_t call
    uint32_t parent
    uint32_t intrinsic
    uint32_t stack
    uint32_t detail
    uint32_t error
    uint32_t task


USUAL_WIDE = ("start_ns", "start_cpu_ns", "wall_ns", "cpu_ns", "inner_wall_ns", "inner_cpu_ns", "bytes")
USUAL_NARROW = ("thread", "call", "parent", "intrinsic", "stack", "detail", "error", "task")
USUAL = [
    *[(name, 8 * i, 8) for i, name in enumerate(USUAL_WIDE)],
    *[(name, 8 * len(USUAL_WIDE) + 4 * i, 4) for i, name in enumerate(USUAL_NARROW)],
]
assert 8 * len(USUAL_WIDE) + 4 * len(USUAL_NARROW) == sizeof(Usual)


cdef struct Place:
    size_t offset
    int size_bytes  # 0: the record does not have the field


include "figures.pxi"
include "nodes.pxi"
include "folding.pxi"
include "slowest.pxi"


cdef struct Awaited:
    uint64_t thread
    uint64_t call
    uint32_t number


cdef struct Closed:
    # A transaction that has ended, as in `tracking.Closing`.
    uint64_t name
    uint64_t start
    uint64_t wall
    uint64_t cpu
    uint64_t think_wall
    uint64_t think_cpu
    uint64_t times


cdef struct Gap:
    # Where a thread is between two transactions that are calls, as in `tracking.Between`; the tracker is told later.
    bint is_known
    uint64_t thread
    int64_t start
    int64_t start_cpu
    int64_t cpu_left


cdef struct Told:
    uint64_t bits
    uint64_t think_wall
    uint64_t think_cpu
    uint64_t stack
    uint64_t name


cdef int by_thread_and_call(const void *first, const void *second) noexcept nogil:
    cdef const Awaited *one = <const Awaited *>first
    cdef const Awaited *other = <const Awaited *>second
    if one.thread != other.thread:
        return 1 if one.thread > other.thread else -1
    return (one.call > other.call) - (one.call < other.call)


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


cdef inline void read_usual(const Usual *record, uint64_t *fields) noexcept nogil:
    fields[START] = record.start_ns
    fields[START_CPU] = record.start_cpu_ns
    fields[WALL] = record.wall_ns
    fields[CPU] = record.cpu_ns
    fields[INNER_WALL] = record.inner_wall_ns
    fields[INNER_CPU] = record.inner_cpu_ns
    fields[BYTES] = record.bytes
    fields[THREAD] = record.thread
    fields[CALL] = record.call
    fields[PARENT] = record.parent
    fields[INTRINSIC] = record.intrinsic
    fields[STACK] = record.stack
    fields[DETAIL] = record.detail
    fields[ERROR] = record.error
    fields[TASK] = record.task


cdef inline bint is_small(int64_t time) noexcept nogil:
    return -<int64_t>longest_ns < time < <int64_t>longest_ns


cdef Closed closed(closing) except *:
    return Closed(
        closing.name,
        closing.start_ns,
        closing.wall_ns,
        closing.cpu_ns,
        closing.think_wall_ns,
        closing.think_cpu_ns,
        closing.times,
    )


@final
cdef class CompiledConsolidator(Records):
    """Consolidates by the fields `by`; as PlainConsolidator."""

    cdef bint is_usual
    cdef Place places[FIELDS]  # if it is not
    cdef int key_fields[KEYS]
    cdef int thread_key  # which of the keys is the thread; -1: none
    cdef int key_count
    cdef size_t record_bytes
    cdef object layout
    cdef tuple by
    cdef object tracker
    cdef object after  # the transaction that ends with the call that is being added
    cdef bint is_tracking
    cdef Gap gap
    cdef uint32_t *roles
    cdef size_t roles_known
    cdef uint16_t *details  # what a statement means for transactions, or GOES_ON, by its number; 0 if that is unknown
    cdef size_t details_known
    # Of the last call that means nothing for transactions, whose record is `last`:
    cdef uint32_t last_into  # what it is inside of
    cdef uint64_t last_thread
    cdef uint64_t last_parent
    cdef size_t waiting  # calls that have not come and had others inside
    cdef size_t waiting_at_most
    cdef size_t held_threads
    cdef size_t held_tasks  # that are in a transaction
    cdef bint is_serving  # whether a call of the next one was a transaction, so that its tasks have no others
    cdef uint64_t serving_thread
    cdef Slowest slow
    cdef uint64_t order

    def __cinit__(
        self,
        layout,
        by,
        histograms=False,
        tracker=None,
        roles=None,
        waiting_at_most=WAITING_AT_MOST,
        records_at_most=RECORDS_AT_MOST,
        slowest_at_most=0,
        details_at_most=DETAILS_AT_MOST,
    ):
        if len(by) > KEYS:
            raise ValueError(f"at most {KEYS} keys")
        narrow = layout.unsigned(MEASURED)
        self.record_bytes = narrow.record_bytes
        self.key_count = len(by)
        self.thread_key = by.index("thread") if "thread" in by else -1
        self.is_usual = [(each.name, each.offset, each.size_bytes) for each in narrow.fields.values()] == USUAL
        for i, name in enumerate(MEASURED):
            self.places[i] = self.place_of(narrow, name)
        for i in range(KEYS):
            self.key_fields[i] = MEASURED.index(by[i]) if i < len(by) else FIELDS
        self.layout = layout
        self.by = tuple(by)
        self.histograms = histograms
        self.tracker = tracker
        self.is_tracking = tracker is not None
        self.waiting_at_most = waiting_at_most
        self.left = records_at_most
        self.detailed_left = details_at_most
        self.kept = details_at_most // 4
        self.detail_key = by.index("detail") if "detail" in by else -1
        self.slow = Slowest(slowest_at_most, self.record_bytes)
        self.know(roles or {})

    def __dealloc__(self):
        free(self.roles)
        free(self.details)

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

    def know(self, roles):
        """What the calls of more intrinsics mean for transactions."""
        cdef size_t known = max([number for number in roles if number < ROLES_AT_MOST], default=-1) + 1
        cdef uint32_t *room
        if known > self.roles_known:
            room = <uint32_t *>realloc(self.roles, known * sizeof(uint32_t))
            if room == NULL:
                raise MemoryError
            memset(room + self.roles_known, 0, (known - self.roles_known) * sizeof(uint32_t))
            self.roles = room
            self.roles_known = known
        for number, role in roles.items():
            if number < ROLES_AT_MOST:
                self.roles[<size_t>number] = role

    def copied(self):
        """Another one that holds the same, to which nothing is added."""
        self.leave_gap()
        cdef CompiledConsolidator other = CompiledConsolidator.__new__(
            CompiledConsolidator, self.layout, self.by, self.histograms, copy.deepcopy(self.tracker),
            {number: self.roles[<size_t>number] for number in range(self.roles_known)},
            self.waiting_at_most, self.left, self.slow.at_most, self.detailed_left,
        )
        other.copy(self)
        return other

    cdef int copy(self, CompiledConsolidator other) except -1:
        self.copy_nodes(other)
        self.kept = other.kept
        self.enough_calls = other.enough_calls
        self.enough_wall = other.enough_wall
        self.waiting = other.waiting
        self.held_threads = other.held_threads
        self.held_tasks = other.held_tasks
        self.is_serving = other.is_serving
        self.serving_thread = other.serving_thread
        self.full = other.full
        self.slow.copy(other.slow)
        return 0

    def slowest(self):
        """The records of the slowest events that did not wait for new work, the slowest first; of two as slow, the one
        that came first."""
        return self.slow.in_order()

    @property
    def is_full(self):
        """Whether there were more different records than are kept."""
        return self.full

    def add(self, events):
        """Add each event in `events`, which must be whole records of possible events."""
        cdef Py_buffer given
        PyObject_GetBuffer(events, &given, PyBUF_SIMPLE)
        try:
            with nogil:
                self.add_all(<const unsigned char *>given.buf, given.len // self.record_bytes)
            self.leave_gap()
        finally:
            PyBuffer_Release(&given)

    def records(self):
        """The records, each behind the one around it; nothing can be added any more."""
        cdef uint32_t i, following
        if self.is_tracking:
            self.let_tasks_go()
        for unended in self.tracker.unended if self.is_tracking else ():
            self.add_unended(unended)
        self.let_go()
        if self.is_tracking:
            for thread, closing in self.tracker.finish():
                self.close(thread, closed(closing))
            for i in range(ROOT + 1, <uint32_t>self.used):
                if self.nodes[i].outer == HELD:
                    self.take_over(ROOT, i)
                    self.unlink(i)
                    self.give_back(i)
            self.held_threads = 0
        return self.given()

    cdef list given(self):
        cdef uint32_t i
        cdef Node *node
        found = []
        waiting = [(-1, i) for i in self.inners(ROOT)]
        while waiting:
            outer, i = waiting.pop()
            node = &self.nodes[i]
            waiting += [(len(found), each) for each in self.inners(i)]
            key = tuple([node.keys[k] for k in range(self.key_count)])
            figures = tuple([node.figures[f] for f in range(FIGURE_COUNT)])
            walls = counted(&node.walls) if self.histograms else None
            cpus = counted(&node.cpus) if self.histograms else None
            found.append(Found(outer, key, node.name, figures, walls, cpus))
        return found

    cdef int add_all(self, const unsigned char *record, size_t count) except -1 nogil:
        cdef Event event
        cdef uint64_t wall
        cdef size_t i
        memset(&event, 0, sizeof(event))
        for i in range(count):
            self.read(record, &event)
            wall = event.fields[WALL]
            self.order += 1
            if self.slow.has_room_for(wall) and not self.role_of(event.fields) & WAITS:
                self.slow.keep(wall, self.order, record)
            if self.is_beside_last(event.fields):
                self.add_beside_last(event.fields, event.keys)
            else:
                self.add_one(event.fields, event.keys)
            record += self.record_bytes
        return 0

    cdef inline void read(self, const unsigned char *record, Event *event) noexcept nogil:
        cdef int i
        if self.is_usual:
            read_usual(<const Usual *>record, event.fields)
        else:
            for i in range(FIELDS):
                event.fields[i] = load(record, self.places[i])
        for i in range(KEYS):
            event.keys[i] = event.fields[self.key_fields[i]]

    cdef inline uint64_t role_of(self, const uint64_t *event) noexcept nogil:
        """What a call means for transactions."""
        cdef uint64_t intrinsic = event[INTRINSIC]
        return self.roles[intrinsic] if intrinsic < self.roles_known else 0

    cdef inline bint is_beside_last(self, const uint64_t *event) noexcept nogil:
        """Whether a call that means nothing for transactions, and has none inside, is inside of what the last such one
        was: most are."""
        cdef uint64_t call = event[CALL]
        if (
            self.last == NONE
            or event[PARENT] != self.last_parent
            or event[THREAD] != self.last_thread
            or self.role_of(event) & ~<uint64_t>(BUSY | ASKS | WAITS)
            or self.is_of_task(event)
        ):
            return False
        if self.is_tracking and self.role_of(event) & ASKS and not self.asks_nothing_new(event):
            return False
        if self.waiting == 1 and self.last_parent:  # for that parent
            return call != self.last_parent
        return self.waiting == 0 or self.find_holder(AWAITED, self.last_thread, call) == NONE

    cdef inline bint is_of_task(self, const uint64_t *event) noexcept nogil:
        """Whether this is an outermost call of a task, and may be in a transaction of the task."""
        return self.is_tracking and event[TASK] != 0 and event[PARENT] == 0

    cdef inline bint asks_nothing_new(self, const uint64_t *event) noexcept nogil:
        """Whether it is known that a call of a database, beside the last one, begins nothing."""
        cdef uint64_t detail = event[DETAIL]
        if detail and (detail >= self.details_known or self.details[detail] != GOES_ON):
            return False
        return event[PARENT] != 0 or (self.nodes[self.last_into].figures[BITS] & ASKS) != 0

    cdef int64_t role_of_statement(self, uint64_t detail) except -1:
        """What a call of a database with this detail means for transactions; known from the second time on."""
        cdef size_t known = self.details_known
        cdef uint16_t *room
        if detail >= DETAILS_KNOWN_AT_MOST:
            return self.tracker.role_of(detail)
        if detail >= known:
            known = min(2 * detail + 64, <uint64_t>DETAILS_KNOWN_AT_MOST)
            room = <uint16_t *>realloc(self.details, known * sizeof(uint16_t))
            if room == NULL:
                raise MemoryError
            memset(room + self.details_known, 0, (known - self.details_known) * sizeof(uint16_t))
            self.details, self.details_known = room, known
        if not self.details[detail]:
            self.details[detail] = self.tracker.role_of(detail) or GOES_ON
        return self.details[detail] & ~GOES_ON

    cdef inline bint has_asked(self, uint64_t thread) noexcept nogil:
        """Whether the tracker knows of a call of a database in what the thread is in."""
        cdef uint32_t held = self.find_holder(HELD, thread, 0)
        return held != NONE and (self.nodes[held].figures[BITS] & ASKS) != 0

    cdef inline int add_beside_last(self, const uint64_t *event, const uint64_t *keys) except -1 nogil:
        cdef uint32_t node = self.last, into = self.last_into
        if not self.is_like(node, keys, 0):
            node = self.node_of(into, keys, 0)
            self.keep_last(node, into)
        if into != ROOT:
            self.nodes[into].figures[BITS] |= self.role_of(event)
        return self.add_figures(node, event, 0, 0)

    cdef inline void keep_last(self, uint32_t node, uint32_t into) noexcept nogil:
        """Have the next call be compared with this one, unless its record is that of all that is too much."""
        self.last = node if self.nodes[node].outer == into else <uint32_t>NONE
        self.last_into = into

    cdef int add_one(self, const uint64_t *event, const uint64_t *keys) except -1 nogil:
        """Add a call that may have others inside, or is inside of another, or is a transaction's."""
        cdef uint64_t thread = event[THREAD]
        cdef uint64_t parent = event[PARENT]
        cdef uint64_t role = self.role_of(event)
        cdef uint64_t think_wall = 0, think_cpu = 0
        cdef uint32_t node, into, awaited = NONE
        cdef bint is_span = (role & SPAN) != 0
        cdef bint ends = False, ends_of_task = False
        cdef Told told
        if role & ASKS and self.is_tracking and event[DETAIL]:
            with gil:
                role |= self.role_of_statement(event[DETAIL])
            if role & RELEASES:
                role &= ~<uint64_t>(ENDS | RELEASES)
        if self.waiting:
            awaited = self.find_holder(AWAITED, thread, event[CALL])
        if awaited:
            self.unlink(awaited)
            self.nodes[awaited].outer = NONE
            self.waiting -= 1
        told = self.told_of(event, awaited, role)
        if is_span:
            think_wall = min(told.think_wall, event[WALL])
            think_cpu = min(told.think_cpu, event[CPU])
        if is_span and self.is_tracking and not (self.is_serving and thread == self.serving_thread):
            with gil:
                self.serve(thread, event[START])
        if parent:
            into = self.find_holder(AWAITED, thread, parent)
            if into == NONE:
                into = self.make_holder(AWAITED, thread, parent)
                self.waiting += 1
            self.tell(into, &told)
        elif not self.is_tracking:
            into = ROOT
        elif event[TASK]:
            # Tasks take turns: they begin and end transactions of their own, none of the thread.
            into = self.hold(thread)
            if into != ROOT:
                self.nodes[into].figures[BITS] |= told.bits & BUSY
            into = self.step_of_task(event, &told, into, &ends_of_task)
        elif is_span or told.bits & DECIDES or (told.bits & ASKS and not self.has_asked(thread)):
            into = self.step(event, &told, role, &ends)
        else:
            into = self.hold(thread)
        if not parent and not event[TASK] and into != ROOT:
            # After a rollback the tracker is asked about the next call, which begins a transaction.
            self.nodes[into].figures[BITS] |= told.bits & (BUSY if told.bits & DROPS else BUSY | ASKS)
        node = self.node_of(into, keys, told.name if is_span else 0)
        if awaited:
            self.take_over(node, awaited)
            self.give_back(awaited)
        self.add_figures(node, event, think_wall, think_cpu)
        if role & ~<uint64_t>(BUSY | ASKS | WAITS) == 0 and not self.is_of_task(event):
            self.keep_last(node, into)
            self.last_thread = thread
            self.last_parent = parent
        if ends:
            with gil:
                self.close_after(thread)
        if ends_of_task:
            with gil:
                self.close_of_task(thread, event[TASK])
        if self.waiting > self.waiting_at_most:
            self.let_go()
        return 0

    cdef Told told_of(self, const uint64_t *event, uint32_t awaited, uint64_t role) noexcept nogil:
        """What a call and those inside of it mean for transactions, and what name they would give one."""
        cdef Told told
        cdef uint64_t detail
        memset(&told, 0, sizeof(Told))
        if awaited:
            told.bits = self.nodes[awaited].figures[BITS]
            told.think_wall = self.nodes[awaited].figures[TOLD_WALL]
            told.think_cpu = self.nodes[awaited].figures[TOLD_CPU]
            told.stack = self.nodes[awaited].figures[TOLD_STACK]
            told.name = self.nodes[awaited].name
        if role & SPAN:
            if role & MARKED or told.name == 0 or told.name == idle:
                detail = event[DETAIL]
                told.name = by_detail | detail if detail else by_intrinsic | event[INTRINSIC]
            told.bits = BUSY
        elif role & READS:
            told.bits = role & (READS | BY_KEYS)
            told.think_wall = event[WALL]
            told.think_cpu = event[CPU]
            told.stack = event[STACK]
        elif role & NAMES:
            detail = event[DETAIL]
            told.bits |= NAMES
            told.name = by_detail | detail if detail else idle
        else:
            told.bits |= role & (BEGINS | ENDS | BUSY | ASKS | AFRESH | DROPS)
            if role & (BEGINS | ENDS):
                told.stack = event[STACK]
        return told

    cdef void tell(self, uint32_t into, Told *told) noexcept nogil:
        """Add what a call means for transactions to what those beside it do."""
        cdef Node *node = &self.nodes[into]
        node.figures[BITS] |= told.bits
        add(&node.figures[TOLD_WALL], told.think_wall)
        add(&node.figures[TOLD_CPU], told.think_cpu)
        if told.stack:
            node.figures[TOLD_STACK] = told.stack
        if told.name:
            node.name = told.name

    cdef uint32_t step(self, const uint64_t *event, Told *told, uint64_t role, bint *ends) except 0 nogil:
        """What the call is put into, after what ended before it; `ends` whether its transaction ends with it."""
        if self.gap.is_known and role & SPAN and self.end_gap(event):
            return ROOT
        with gil:
            return self.ask(event, told, role, ends)

    cdef bint end_gap(self, const uint64_t *event) except -1 nogil:
        """Do what the tracker does where one transaction that is a call follows another on its thread; false if it must
        be asked. Asking takes longer than all else that is done with such a call and the calls inside of it."""
        cdef Gap *gap = &self.gap
        cdef uint64_t start = event[START], start_cpu = event[START_CPU]
        cdef int64_t wall, used, cpu
        if event[THREAD] != gap.thread or start_cpu > latest_ns:
            return False
        wall = max(<int64_t>start - gap.start, 0)
        used = <int64_t>start_cpu - gap.start_cpu + gap.cpu_left
        cpu = min(max(used, 0), wall)
        if not is_small(used - cpu):
            return False
        self.close(gap.thread, Closed(idle, gap.start, wall, cpu, 0, 0, 1))
        gap.start = start + event[WALL]
        gap.start_cpu = start_cpu + event[CPU]
        gap.cpu_left = used - cpu
        return True

    cdef int enter_gap(self, thread) except -1:
        """Know where the thread is, if the tracker says so and the figures cannot pass what 64 bits hold."""
        between = self.tracker.between(thread)
        if between is not None and between.start_cpu_ns <= LATEST_NS and -LONGEST_NS < between.cpu_left_ns < LONGEST_NS:
            self.gap = Gap(True, thread, between.start_ns, between.start_cpu_ns, between.cpu_left_ns)
        return 0

    cdef int leave_gap(self) except -1:
        """Have the tracker know what was done without it."""
        if self.gap.is_known:
            self.gap.is_known = False
            self.tracker.go_on_between(
                self.gap.thread, Between(self.gap.start, self.gap.start_cpu, self.gap.cpu_left)
            )
        return 0

    cdef uint32_t ask(self, const uint64_t *event, Told *told, uint64_t role, bint *ends) except 0:
        """Have the tracker decide; returns what the call is put into."""
        thread = event[THREAD]
        cdef uint32_t held = self.find_holder(HELD, thread, 0)
        call = Outermost(
            event[START],
            event[WALL],
            event[START_CPU],
            event[CPU],
            told.bits | role & (SPAN | MARKED),
            told.think_wall,
            told.think_cpu,
            told.stack,
            told.name,
        )
        self.leave_gap()
        step = self.tracker.step(thread, call, held != NONE and (self.nodes[held].figures[BITS] & BUSY) != 0)
        if step.is_its_own:
            self.enter_gap(thread)
        if step.before is not None:
            self.close(thread, closed(step.before))
        ends[0] = step.after is not None
        self.after = step.after
        return ROOT if step.is_its_own else self.hold(thread)

    cdef int close_after(self, uint64_t thread) except -1:
        self.close(thread, closed(self.after))
        self.after = None
        return 0

    cdef uint32_t step_of_task(self, const uint64_t *event, Told *told, uint32_t around, bint *ends) except 0 nogil:
        """What an outermost call of a task is put into; `ends` whether a transaction of the task ends with it."""
        cdef uint64_t decides = told.bits & OF_TASKS
        cdef uint32_t held = self.find_holder(HELD, event[THREAD], event[TASK]) if self.held_tasks else <uint32_t>NONE
        if decides & ASKS and (decides != ASKS or held == NONE):
            with gil:
                if not self.tracker.is_serving(event[THREAD]):
                    held = self.ask_of_task(event, decides, told.stack, held, ends)
        return held if held != NONE else around

    cdef uint32_t ask_of_task(
        self, const uint64_t *event, uint64_t decides, uint64_t stack, uint32_t held, bint *ends
    ) except? 0:
        """Have the tracker decide about a call of a task; returns what holds the task's transaction, if it is in one."""
        thread, task = event[THREAD], event[TASK]
        if held == NONE and self.held_tasks >= self.waiting_at_most:
            self.let_tasks_go()
        call = Outermost(event[START], event[WALL], event[START_CPU], event[CPU], decides, 0, 0, stack, 0)
        step = self.tracker.step_of_task(thread, task, call)
        if step.before is not None:  # one begins
            self.let_task_go(thread, task)
            held = self.make_holder(HELD, thread, task)
            self.held_tasks += 1
        ends[0] = step.after is not None
        self.after = step.after
        return held

    cdef int close_of_task(self, uint64_t thread, uint64_t task) except -1:
        """Put what was held of a task under its transaction, which is inside of what its thread is in."""
        cdef uint64_t keys[KEYS]
        cdef uint32_t i, node, into = self.hold(thread), held = self.find_holder(HELD, thread, task)
        cdef uint64_t cpu = 0
        cdef Closed made = closed(self.after)
        self.after = None
        if held and into != ROOT and not is_pseudo(made.name):
            self.key_of(thread, keys)
            node = self.node_of(into, keys, made.name)
            for i in self.inners(held):
                add(&cpu, self.nodes[i].figures[CPU_SUM])
            made.cpu = min(cpu, made.wall)
            self.add_closed(node, &made)
            self.let_held_go(held, node)
        elif held:
            self.let_held_go(held, into)
        return 0

    cdef int let_held_go(self, uint32_t held, uint32_t into) except -1:
        """Have what was held of a task inside of that."""
        self.unlink(held)
        self.nodes[held].outer = NONE
        self.held_tasks -= 1
        self.take_over(into, held)
        self.give_back(held)
        return 0

    cdef int let_task_go(self, uint64_t thread, uint64_t task) except -1:
        """Have what was held of a task be in no transaction of its own."""
        cdef uint32_t held = self.find_holder(HELD, thread, task)
        if held:
            self.let_held_go(held, self.hold(thread))
        return 0

    cdef list tasks_held(self):
        """The tasks that are in a transaction, each with its thread, sorted."""
        cdef uint32_t i
        if self.held_tasks == 0:
            return []
        held = [i for i in range(ROOT + 1, <uint32_t>self.used) if self.nodes[i].outer == HELD]
        return sorted([(self.nodes[<uint32_t>each].keys[0], self.nodes[<uint32_t>each].keys[1]) for each in held])

    cdef int let_tasks_go(self) except -1:
        self.tracker.forget_tasks()
        for thread, task in self.tasks_held():
            if task:
                self.let_task_go(thread, task)
        return 0

    cdef int serve(self, uint64_t thread, uint64_t since) except -1:
        """Have what the tasks of a thread commit be in no transactions of their own, from the first call on that is
        one."""
        cdef uint32_t i, held
        self.is_serving = True
        self.serving_thread = thread
        if self.tracker.is_serving(thread):
            return 0
        self.tracker.serve(thread, since)
        for of_thread, task in self.tasks_held():
            if task and of_thread == thread:
                self.let_task_go(thread, task)
        held = self.find_holder(HELD, thread, 0)
        inners = self.inners(held) if held else []
        of_tasks = [i for i in inners if self.nodes[<uint32_t>i].name & ~number_bits == by_stack]
        of_tasks = [i for i in of_tasks if self.nodes[<uint32_t>i].figures[LAST] > since]
        if of_tasks:
            self.nodes[held].first_inner = NONE
            for i in inners:
                if i in of_tasks:
                    self.unlink(i)
                else:
                    self.put(held, i)
        for i in of_tasks:
            self.left += 1
            self.take_over(held, i)
            self.give_back(i)
        return 0

    cdef inline void key_of(self, uint64_t thread, uint64_t *keys) noexcept nogil:
        """The keys of the transactions of `thread`."""
        memset(keys, 0, KEYS * sizeof(uint64_t))
        if self.thread_key >= 0:
            keys[self.thread_key] = thread

    cdef int close(self, uint64_t thread, Closed closed) except -1 nogil:
        """Put what was held of `thread` under its transaction, which is one more."""
        cdef uint64_t keys[KEYS]
        cdef uint32_t node, held
        self.key_of(thread, keys)
        node = self.node_of(ROOT, keys, closed.name)
        held = self.find_holder(HELD, thread, 0)
        if held:
            self.unlink(held)
            self.nodes[held].outer = NONE
            self.held_threads -= 1
            self.take_over(node, held)
            self.give_back(held)
        return self.add_closed(node, &closed)

    cdef int add_closed(self, uint32_t node, const Closed *closed) except -1 nogil:
        """Add the figures of a transaction."""
        cdef uint64_t *figures = self.nodes[node].figures
        figures[CALLS] += closed.times
        add(&figures[WALL_SUM], closed.wall)
        add(&figures[CPU_SUM], closed.cpu)
        if closed.times:
            return self.add_spread(node, closed.start, closed.wall, closed.cpu, closed.think_wall, closed.think_cpu)
        at_least(&figures[FIRST], closed.start)
        at_most(&figures[LAST], closed.start + closed.wall)
        add(&figures[THINK_WALL], closed.think_wall)
        add(&figures[THINK_CPU], closed.think_cpu)
        return 0

    cdef uint32_t hold(self, uint64_t thread) except 0 nogil:
        """What holds the records of the transaction that `thread` is in."""
        cdef uint32_t i = self.find_holder(HELD, thread, 0)
        if i == NONE:
            if self.held_threads >= self.waiting_at_most:
                return ROOT
            i = self.make_holder(HELD, thread, 0)
            self.held_threads += 1
        return i

    cdef inline int add_figures(
        self, uint32_t number, const uint64_t *event, uint64_t think_wall, uint64_t think_cpu
    ) except -1 nogil:
        cdef uint64_t *figures = self.nodes[number].figures
        cdef uint64_t wall = event[WALL]
        cdef uint64_t cpu = event[CPU]
        cdef uint64_t inner_wall = event[INNER_WALL]
        cdef uint64_t inner_cpu = event[INNER_CPU]
        figures[CALLS] += 1
        figures[ERRORS] += event[ERROR] != 0
        add(&figures[WALL_SUM], wall)
        add(&figures[CPU_SUM], cpu)
        add(&figures[SELF_WALL], wall - inner_wall if wall > inner_wall else 0)
        add(&figures[SELF_CPU], cpu - inner_cpu if cpu > inner_cpu else 0)
        add(&figures[BYTES_SUM], event[BYTES])
        return self.add_spread(number, event[START], wall, cpu, think_wall, think_cpu)

    cdef inline int add_spread(
        self, uint32_t number, uint64_t start, uint64_t wall, uint64_t cpu, uint64_t think_wall, uint64_t think_cpu
    ) except -1 nogil:
        """Add what is not simply summed: when, the least, the most, and how they are spread."""
        cdef Node *node = &self.nodes[number]
        at_least(&node.figures[FIRST], start)
        at_most(&node.figures[LAST], start + wall)
        add(&node.figures[THINK_WALL], think_wall)
        add(&node.figures[THINK_CPU], think_cpu)
        wall -= think_wall
        cpu -= think_cpu
        at_least(&node.figures[WALL_LEAST], wall)
        at_most(&node.figures[WALL_MOST], wall)
        at_least(&node.figures[CPU_LEAST], cpu)
        at_most(&node.figures[CPU_MOST], cpu)
        if self.histograms:
            count_in(&node.walls, bucket_of(wall), 1)
            count_in(&node.cpus, bucket_of(cpu), 1)
        return 0

    cdef Awaited *all_awaited(self) except NULL nogil:
        """What waits, `waiting` of them, by thread and call."""
        cdef Awaited *awaited = <Awaited *>calloc(self.waiting, sizeof(Awaited))
        cdef size_t count = 0
        cdef uint32_t i
        if awaited == NULL:
            with gil:
                raise MemoryError
        for i in range(ROOT + 1, <uint32_t>self.used):
            if self.nodes[i].outer == AWAITED and count < self.waiting:
                awaited[count] = Awaited(self.nodes[i].keys[0], self.nodes[i].keys[1], i)
                count += 1
        self.waiting = count
        qsort(awaited, count, sizeof(Awaited), by_thread_and_call)
        return awaited

    cdef int add_unended(self, unended) except -1:
        """Attach the calls inside a transaction in progress to that transaction, so that they are not outermost."""
        cdef uint64_t thread = unended.thread
        cdef uint32_t i, held
        names, inside = {}, []
        for call, _, _ in unended.calls:
            i = self.find_holder(AWAITED, thread, call)
            if i != NONE:
                names[call] = self.nodes[i].name
                self.unlink(i)
                self.nodes[i].outer = NONE
                self.waiting -= 1
                inside.append(i)
        self.leave_gap()
        held = self.find_holder(HELD, thread, 0)
        is_busy = held != NONE and (self.nodes[held].figures[BITS] & BUSY) != 0
        closings = self.tracker.end_unended(unended, unended.name(names), is_busy)
        if closings:
            self.close(thread, closed(closings[0]))
        for i in inside:
            self.take_over(self.hold(thread), i)
            self.give_back(i)
        if closings:
            self.close(thread, closed(closings[1]))
        return 0

    cdef int let_go(self) except -1 nogil:
        """Have all that still waits for the call around it inside of nothing but the transaction of its thread."""
        cdef Awaited *awaited
        cdef size_t place
        cdef uint32_t i, into
        if self.waiting == 0:
            return 0
        awaited = self.all_awaited()
        try:
            for place in range(self.waiting):
                i = awaited[place].number
                self.unlink(i)
                self.nodes[i].outer = NONE
                into = self.hold(awaited[place].thread) if self.is_tracking else ROOT
                self.take_over(into, i)
                self.give_back(i)
        finally:
            free(awaited)
        self.waiting = 0
        return 0
