# cython: boundscheck=False, wraparound=False, cdivision=True
"""The events of a block as packets of a Perfetto trace: a slice's begin and its end for each, with what is known of the call.

Names, sites and texts are numbers here (`interned_data`); whoever writes the packets has written before what each new one stands
for. The numbers are those of the experiment. Numbers of fields are those of perfetto_trace.proto.
"""

from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from libc.stdint cimport uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy

FIELDS = ("start_ns", "wall_ns", "cpu_ns", "bytes", "thread", "intrinsic", "stack", "detail", "error", "task", "call")
# What annotations are called, by their numbers from 1 on.
ANNOTATIONS = ("cpu_ns", "bytes", "detail", "error", "other_spans")

cdef enum:
    START, WALL, CPU, BYTES, THREAD, INTRINSIC, STACK, DETAIL, ERROR, TASK, CALL
    PICKED

cdef enum:
    CPU_NAME = 1, BYTES_NAME, DETAIL_NAME, ERROR_NAME, SPANS_NAME
    NUMBERS_AT_MOST = 1 << 26  # a number beyond is of a damaged experiment, and stands for nothing
    KINDS_AT_MOST = 1 << 16
    FLOWS_AT_MOST = 8  # of a slice, of each sort
    LONGEST = 384  # bytes of a slice's begin and end
    FLOW_BEGINS = 47
    FLOW_ENDS = 48
    SLICE_BEGIN = 1
    SLICE_END = 2


OTHER_TEXTS = NUMBERS_AT_MOST  # texts that the experiment does not have get numbers from here on
assert len(FIELDS) == PICKED and FIELDS.index("call") == CALL


cdef struct Field:
    size_t offset
    int size_bytes  # 0: the record does not have it


cdef inline uint8_t *put(uint8_t *at, uint64_t value) noexcept nogil:
    """A number in groups of seven bits."""
    while value > 0x7F:
        at[0] = <uint8_t>(value & 0x7F) | 0x80
        at += 1
        value >>= 7
    at[0] = <uint8_t>value
    return at + 1


cdef inline uint8_t *put_number(uint8_t *at, uint32_t field, uint64_t value) noexcept nogil:
    return put(put(at, field << 3), value)


cdef inline uint8_t *put_message(uint8_t *at, uint32_t field, const uint8_t *begin, const uint8_t *end) noexcept nogil:
    at = put(put(at, field << 3 | 2), end - begin)
    memcpy(at, begin, end - begin)
    return at + (end - begin)


cdef inline uint8_t *put_annotation(uint8_t *at, uint32_t name, uint32_t field, uint64_t value) noexcept nogil:
    """A debug annotation: its name, and its value in the field of its type."""
    cdef uint8_t inner[32]
    return put_message(at, 4, inner, put_number(put_number(inner, 1, name), field, value))


cdef uint8_t *put_flows(uint8_t *at, uint32_t field, list numbers) except NULL:
    """The flows that begin, or end, with a slice; each has 64 bits."""
    cdef uint64_t number
    for number in numbers[:FLOWS_AT_MOST]:
        at = put(at, field << 3 | 1)
        memcpy(at, &number, sizeof(number))
        at += sizeof(number)
    return at


cdef class Seen:
    """Which numbers were met."""

    cdef bytearray bits

    def __cinit__(self):
        self.bits = bytearray(1024)

    cdef bint is_new(self, uint64_t number) except -1:
        """Whether a number is met for the first time; 0 and what is too large never is."""
        if number == 0 or number >= NUMBERS_AT_MOST:
            return False
        cdef size_t place = number >> 3
        if place >= <size_t>len(self.bits):
            self.bits.extend(bytes(2 * place - len(self.bits)))
        cdef uint8_t bit = 1 << (number & 7)
        cdef uint8_t *bits = self.bits
        if bits[place] & bit:
            return False
        bits[place] |= bit
        return True


cdef class Packets:
    """Makes the packets of one process, the sequence `sequence` of the trace."""

    cdef Field fields[PICKED]
    cdef size_t record_bytes
    cdef uint32_t sequence
    cdef Seen intrinsics, stacks, texts
    cdef dict tracks, begin, begin_at, end, spans
    cdef list kinds

    def __init__(self, layout, uint32_t sequence, flows, spans):
        """`spans` has the number of a text for each call, by thread and number, in which another tracer had a span."""
        picked = layout.unsigned(FIELDS)
        for place, name in enumerate(FIELDS):
            field = picked.fields.get(name)
            self.fields[place].offset = field.offset if field else 0
            self.fields[place].size_bytes = field.size_bytes if field else 0
        self.record_bytes = layout.record_bytes
        self.sequence = sequence
        self.intrinsics, self.stacks, self.texts = Seen(), Seen(), Seen()
        self.tracks = {}
        self.begin, self.begin_at, self.end = dict(flows.begin), dict(flows.begin_at), dict(flows.end)
        self.spans = spans
        self.kinds = [0] * KINDS_AT_MOST

    def name_kind(self, uint32_t intrinsic, uint32_t kind):
        """The category of an intrinsic's slices."""
        if intrinsic < KINDS_AT_MOST:
            self.kinds[intrinsic] = kind

    def name_track(self, uint32_t thread, uint32_t task, uint64_t track):
        """The track of a thread's calls in a task."""
        self.tracks[<uint64_t>thread << 32 | task] = track

    cdef uint64_t field(self, const uint8_t *record, int which) noexcept:
        cdef uint64_t value = 0
        memcpy(&value, record + self.fields[which].offset, self.fields[which].size_bytes)
        return value

    def new_in(self, events):
        """What is met for the first time: intrinsics, stacks, texts, and (thread, task) that have no track yet."""
        cdef Py_buffer given
        PyObject_GetBuffer(events, &given, PyBUF_SIMPLE)
        try:
            return self.new_among(<const uint8_t *>given.buf, given.len // self.record_bytes)
        finally:
            PyBuffer_Release(&given)

    cdef list new_among(self, const uint8_t *records, size_t count):
        cdef size_t place
        cdef const uint8_t *record
        cdef list found = [[], [], [], []]
        cdef uint64_t last = <uint64_t>-1, track
        cdef uint64_t number
        for place in range(count):
            record = records + place * self.record_bytes
            number = self.field(record, INTRINSIC)
            if self.intrinsics.is_new(number):
                found[0].append(number)
            number = self.field(record, STACK)
            if self.stacks.is_new(number):
                found[1].append(number)
            for which in (DETAIL, ERROR):
                number = self.field(record, which)
                if self.texts.is_new(number):
                    found[2].append(number)
            track = self.field(record, THREAD) << 32 | self.field(record, TASK)
            if track != last and track not in self.tracks:
                self.tracks[track] = 0
                found[3].append((track >> 32, track & 0xFFFFFFFF))
            last = track
        return found

    def packets(self, events):
        """The packets of the events, in their order."""
        cdef Py_buffer given
        PyObject_GetBuffer(events, &given, PyBUF_SIMPLE)
        try:
            return self.packets_of(<const uint8_t *>given.buf, given.len // self.record_bytes)
        finally:
            PyBuffer_Release(&given)

    cdef bytes packets_of(self, const uint8_t *records, size_t count):
        cdef size_t place
        cdef bytearray made = bytearray(count * LONGEST)
        cdef uint8_t *begin = made
        cdef uint8_t *at = begin
        cdef const uint8_t *record
        cdef uint64_t last = <uint64_t>-1, of, track = 0, start_ns
        for place in range(count):
            record = records + place * self.record_bytes
            of = self.field(record, THREAD) << 32 | self.field(record, TASK)
            if of != last:
                track = self.tracks[of]
                last = of
            start_ns = self.field(record, START)
            at = self.put_begin(at, record, start_ns, track)
            at = self.put_packet(at, start_ns + self.field(record, WALL), NULL, NULL, SLICE_END, track)
        return bytes(made[: at - begin])

    cdef uint8_t *put_begin(self, uint8_t *at, const uint8_t *record, uint64_t start_ns, uint64_t track):
        cdef uint8_t more[LONGEST]
        cdef uint8_t *end = more
        cdef uint64_t intrinsic = self.field(record, INTRINSIC), stack = self.field(record, STACK)
        cdef uint64_t bytes_moved = self.field(record, BYTES)
        if intrinsic < KINDS_AT_MOST and self.kinds[intrinsic]:
            end = put_number(end, 3, self.kinds[intrinsic])
        end = put_annotation(end, CPU_NAME, 3, self.field(record, CPU))
        if bytes_moved:
            end = put_annotation(end, BYTES_NAME, 3, bytes_moved)
        end = self.put_text(end, DETAIL_NAME, self.field(record, DETAIL))
        end = self.put_text(end, ERROR_NAME, self.field(record, ERROR))
        if 0 < intrinsic < NUMBERS_AT_MOST:
            end = put_number(end, 10, intrinsic)
        if 0 < stack < NUMBERS_AT_MOST:
            end = put_number(end, 34, stack)
        if self.spans:
            end = self.put_spans_of(end, self.field(record, THREAD), self.field(record, CALL))
        if self.begin or self.begin_at or self.end:
            end = self.put_flows_of(end, self.field(record, THREAD), self.field(record, CALL), self.field(record, START))
        return self.put_packet(at, start_ns, more, end, SLICE_BEGIN, track)

    cdef uint8_t *put_flows_of(self, uint8_t *at, uint64_t thread, uint64_t call, uint64_t start_ns) except NULL:
        at = put_flows(at, FLOW_BEGINS, self.begin.get((thread, call), []) + self.begin_at.get((thread, start_ns), []))
        return put_flows(at, FLOW_ENDS, self.end.get((thread, call), []))

    cdef uint8_t *put_spans_of(self, uint8_t *at, uint64_t thread, uint64_t call) except NULL:
        number = self.spans.get((thread, call))
        return at if number is None else put_annotation(at, SPANS_NAME, 17, number)

    cdef uint8_t *put_text(self, uint8_t *at, uint32_t name, uint64_t number) noexcept:
        return put_annotation(at, name, 17, number) if 0 < number < NUMBERS_AT_MOST else at

    cdef uint8_t *put_packet(
        self, uint8_t *at, uint64_t time_ns, const uint8_t *more, const uint8_t *more_end, uint32_t kind, uint64_t track
    ) noexcept:
        """A packet of a track event; `more` are fields of the event."""
        cdef uint8_t event[LONGEST]
        cdef uint8_t packet[LONGEST]
        cdef uint8_t *end = put_number(put_number(event, 9, kind), 11, track)
        if more != NULL:
            memcpy(end, more, more_end - more)
            end += more_end - more
        cdef uint8_t *last = put_number(put_number(put_number(packet, 8, time_ns), 10, self.sequence), 13, 2)
        last = put_message(last, 11, event, end)
        return put_message(at, 1, packet, last)
