"""A trace as https://ui.perfetto.dev, trace_processor and its SQL read it: TrackEvents in Protocol Buffers, by gzip.

A track for each process and thread, and below a thread for each of its tasks; a slice for each call, in the category
of its kind, with its line as source location, and CPU time, bytes, detail, error, and the span that another tracer had
active as arguments. A call in progress has no end. Counters: processors in use and largest memory of each process, from
the samples of its overview, and what was counted beside time. Names are written once. Flows lead from the call that
started a process to that process, and from a request to the call of another process that served it.
"""

from __future__ import annotations

import gzip
from collections.abc import Iterator, Mapping, Sequence
from itertools import count
from typing import BinaryIO

from interpose.analysis.analysis import Analysis
from interpose.analysis.time.usage import Usage
from interpose.experiments.format.trace_contexts import in_words
from interpose.experiments.model.process import Process
from interpose.experiments.model.threads import Thread
from interpose.exports.counter_tracks import Unit, counter_tracks, usages_by_process
from interpose.exports.flows import Flows, flows_of
from interpose.exports.protobuf import double, fixed64, message, number, text
from interpose.exports.single_events import LaneNames, blocks_of, calls_in_progress, end_of, refuse_without_events
from interpose.exports.trace_packets import ANNOTATIONS, OTHER_TEXTS, Packets
from interpose.reports.formats.table import clean
from interpose.reports.screen.state import command_line

# Fields of TracePacket.
_PACKET = 1
_CLOCKS, _TIME, _SEQUENCE, _TRACK_EVENT, _INTERNED, _FLAGS, _TRACK = 6, 8, 10, 11, 12, 13, 60
_STATE_CLEARED, _NEEDS_STATE = 1, 2
_REALTIME, _MONOTONIC, _BOOTTIME = 1, 3, 6  # clocks; the trace's own is the last of them
_SLICE_BEGIN, _SLICE_END, _COUNTER = 1, 2, 4
_FLOW_BEGINS, _FLOW_ENDS = 47, 48
_UNITS = {Unit.RATIO: (), Unit.COUNT: (number(3, 2),), Unit.BYTES: (number(3, 3),)}
_LEVEL = 1  # of gzip: a third larger than the best, five times as fast


def write(analysis: Analysis, out: BinaryIO) -> None:
    """Write the trace of an analysis. Raises UsageError if single events were not kept."""
    experiment = analysis.experiment
    refuse_without_events(experiment)
    used = usages_by_process(experiment)
    tracks, flows = count(1), flows_of(experiment)
    with gzip.GzipFile(filename="", mode="wb", compresslevel=_LEVEL, fileobj=out, mtime=0) as file:
        file.write(_clocks(experiment.founder))
        for sequence, process in enumerate(experiment.processes, 1):
            for packet in _Process(process, sequence, tracks, flows[process]).packets(used[process]):
                file.write(packet)


def _clocks(founder: Process) -> bytes:
    """Instants are of the monotonic clock, which stands for the trace's own; the calendar's is known at one of them."""
    known = (_BOOTTIME, founder.log.start_ns), (_MONOTONIC, founder.log.start_ns), (_REALTIME, founder.log.time_ns)
    clocks = [message(1, number(1, clock), number(2, max(time_ns, 0))) for clock, time_ns in known]
    return message(_PACKET, message(_CLOCKS, *clocks))


class _Process:
    """Makes the packets of a process."""

    def __init__(self, process: Process, sequence: int, tracks: count[int], flows: Flows) -> None:
        self._process = process
        self._sequence = sequence
        self._tracks = tracks
        self._flows = flows
        self._track = next(tracks)
        self._of_thread: dict[int, int] = {}
        self._kinds: dict[str, int] = {}
        self._names = LaneNames(process)

    def packets(self, used: Sequence[Usage]) -> Iterator[bytes]:
        """All packets: tracks, calls, calls still in progress, and use of resources."""
        yield self._begin()
        if self._flows.is_child:
            yield self._whole()
        for thread in self._process.threads:
            yield self._thread(thread.number, thread)
        if self._process.events:
            spans = {call: number for number, call in enumerate(self._process.active_spans, OTHER_TEXTS)}
            yield self._other_spans(spans)
            made = Packets(self._process.events.layout, self._sequence, self._flows, spans)
            for block in blocks_of(self._process):
                yield self._new(made, block.events)
                yield made.packets(block.events)
        yield from self._in_progress()
        yield from self._counters(used)

    def _packet(self, *fields: bytes, flags: int = _NEEDS_STATE) -> bytes:
        return message(_PACKET, number(_SEQUENCE, self._sequence), number(_FLAGS, flags), *fields)

    def _begin(self) -> bytes:
        log = self._process.log
        name = command_line(self._process)
        process = message(3, number(1, log.pid), *(text(2, clean(each)) for each in log.arguments), text(6, name))
        names = [message(3, number(1, place), text(2, each)) for place, each in enumerate(ANNOTATIONS, 1)]
        begin = self._packet(message(_INTERNED, *names), flags=_STATE_CLEARED)
        return begin + self._described(self._track, text(2, name), process)

    def _other_spans(self, numbers: Mapping[tuple[int, int], int]) -> bytes:
        """The spans of other tracers, as texts with these numbers."""
        active = self._process.active_spans
        texts = [message(29, number(1, each), text(2, in_words(active[call]))) for call, each in numbers.items()]
        return self._packet(message(_INTERNED, *texts)) if texts else b""

    def _whole(self) -> bytes:
        """A slice from the process's start to its end, to which the call that started it leads."""
        process, track = self._process, number(11, self._track)
        begin_ns, end_ns = number(_TIME, process.log.start_ns), number(_TIME, end_of(process))
        ends = [fixed64(_FLOW_ENDS, self._flows.started)] if self._flows.started else []
        led = text(23, command_line(process)), *ends
        begin = self._packet(begin_ns, message(_TRACK_EVENT, number(9, _SLICE_BEGIN), track, *led))
        return begin + self._packet(end_ns, message(_TRACK_EVENT, number(9, _SLICE_END), track))

    def _described(self, track: int, *fields: bytes) -> bytes:
        return self._packet(message(_TRACK, number(1, track), *fields))

    def _thread(self, thread: int, known: Thread | None = None) -> bytes:
        track = self._of_thread[thread] = next(self._tracks)
        tid = known.record.tid if known and known.record.tid else thread
        name = clean(self._names.thread(thread))
        return self._described(track, message(4, number(1, self._process.log.pid), number(2, tid), text(5, name)))

    def _new(self, made: Packets, events: memoryview) -> bytes:
        """What the events name for the first time."""
        intrinsics, stacks, texts, lanes = made.new_in(events)
        described = [self._lane(made, thread, task) for thread, task in lanes]
        interned = [self._intrinsic(made, each) for each in intrinsics]
        interned += [self._site(each) for each in stacks]
        interned += [message(29, number(1, each), text(2, clean(self._process.string(each)))) for each in texts]
        return b"".join(described) + (self._packet(message(_INTERNED, *interned)) if interned else b"")

    def _lane(self, made: Packets, thread: int, task: int) -> bytes:
        described = b"" if thread in self._of_thread else self._thread(thread)
        track = self._of_thread[thread]
        if task:
            around, track = track, next(self._tracks)
            name = clean(self._names.task(task))
            described += self._described(track, text(2, name), number(5, around))
        made.name_track(thread, task, track)
        return described

    def _intrinsic(self, made: Packets, intrinsic: int) -> bytes:
        """An intrinsic's name, and its kind where that is new."""
        known = self._process.intrinsic(intrinsic)
        interned = message(2, number(1, intrinsic), text(2, clean(known.name)))
        if known.kind not in self._kinds:
            self._kinds[known.kind] = len(self._kinds) + 1
            interned += message(1, number(1, self._kinds[known.kind]), text(2, clean(known.kind)))
        made.name_kind(intrinsic, self._kinds[known.kind])
        return interned

    def _site(self, stack: int) -> bytes:
        site = self._process.own_line(stack)
        where = (text(2, clean(site.file)), text(3, clean(site.function)), number(4, site.line)) if site else ()
        return message(4, number(1, stack), *where)

    def _in_progress(self) -> Iterator[bytes]:
        for call in calls_in_progress(self._process):
            name = text(23, clean(self._process.intrinsic(call.intrinsic).name))
            begins, ends = self._flows.at(call)
            flows = [fixed64(_FLOW_BEGINS, each) for each in begins] + [fixed64(_FLOW_ENDS, each) for each in ends]
            begin = number(9, _SLICE_BEGIN), number(11, self._of_thread[call.thread]), name, *flows
            yield self._packet(number(_TIME, call.start_ns), message(_TRACK_EVENT, *begin))

    def _counters(self, used: Sequence[Usage]) -> Iterator[bytes]:
        for each in counter_tracks(self._process, used):
            track, unit = next(self._tracks), _UNITS[each.unit]
            yield self._described(track, text(2, each.name), number(5, self._track), message(8, *unit))
            for time_ns, value in each.values:
                as_value = double(44, value) if isinstance(value, float) else number(30, value)
                yield self._counter(time_ns, track, as_value)

    def _counter(self, time_ns: int, track: int, value: bytes) -> bytes:
        event = message(_TRACK_EVENT, number(9, _COUNTER), number(11, track), value)
        return self._packet(number(_TIME, time_ns), event)
