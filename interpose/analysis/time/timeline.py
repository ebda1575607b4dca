"""The time-line: the kind of call of each thread in equal slices of time, and the longest calls by themselves.

Events are read once. If a slice is shorter than the time that a block spans, each event goes into its own slices;
otherwise all of a block, combined by kind, goes into the one or two slices that it spans. If there are too many events
for that, their time is spread evenly over the span of their block, and the time-line is estimated.
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from interpose.analysis.analysis import Analysis
from interpose.analysis.calls.account import ProcessAccount
from interpose.analysis.consolidation.consolidate import Consolidator, fastest_consolidator
from interpose.analysis.consolidation.sums import FIGURES
from interpose.analysis.time.sampled_states import lay_samples
from interpose.experiments.format.blocks import Block
from interpose.experiments.format.layout import Layout
from interpose.experiments.format.possible import LATEST_NS, LONGEST_NS
from interpose.experiments.model.collection import Collection
from interpose.experiments.model.process import Process

SLICES = 1_200
LANES_AT_MOST = 60
CALLS_AT_MOST = 3_000
ONE_BY_ONE_AT_MOST = 500_000
_WAITING_AT_MOST = 100_000
_FIELDS = (
    "start_ns",
    "wall_ns",
    "cpu_ns",
    "inner_wall_ns",
    "thread",
    "call",
    "parent",
    "intrinsic",
    "stack",
    "detail",
    "task",
)
_SELF_WALL = FIGURES.index("self_wall_ns")


@dataclass
class Lane:
    """A thread of a process: from when to when it lived, and for how long it was in each kind of call, slice by slice;
    where it was sampled also for how long its code was in each of `STATES`."""

    process: Process
    thread: int
    start_ns: int
    end_ns: int
    kinds: dict[str, list[int]] = field(default_factory=dict)


@dataclass(frozen=True, order=True)
class LongCall:
    """One of the longest calls: the number of its lane, its intrinsic, its line, and its detail."""

    wall_ns: int
    start_ns: int
    cpu_ns: int
    lane: int
    intrinsic: int
    stack: int
    detail: int


@dataclass
class Timeline:
    """Slices of `slice_ns` from `start_ns` on; instants of lanes and calls are on the same clock.

    `left_out` threads have no lane. `is_estimated` where events were spread over longer than a slice.
    """

    start_ns: int
    slice_ns: int
    slices: int
    lanes: list[Lane]
    calls: list[LongCall] = field(default_factory=list)
    left_out: int = 0
    is_estimated: bool = False


def timeline(analysis: Analysis, slices: int = SLICES) -> Timeline:
    """The time-line of an analysis; for several experiments, on the calendar, because their clocks cannot be compared.
    """
    experiment = analysis.experiment
    is_calendar = isinstance(experiment, Collection)
    lanes = [lane for each in analysis.accounts for lane in _lanes_of(each, is_calendar)]
    kept = _in_order(sorted(lanes, key=lambda lane: -_busy_ns(lane))[:LANES_AT_MOST], lanes)
    first_ns = min((lane.start_ns for lane, _ in kept), default=0)
    last_ns = max((lane.end_ns for lane, _ in kept), default=0)
    slice_ns = max(-(-(last_ns - first_ns) // slices), 1)
    made = Timeline(first_ns, slice_ns, slices, [lane for lane, _ in kept], left_out=len(lanes) - len(kept))
    _Laying(made, is_calendar).lay(experiment.processes)
    lay_samples(made, {process: _moved_ns(process, is_calendar) for process in experiment.processes})
    return made


_Kept = tuple[Lane, int]


def _busy_ns(lane: _Kept) -> int:
    return lane[1]


def _in_order(kept: list[_Kept], lanes: list[_Kept]) -> list[_Kept]:
    """The lanes of a process together, those of the process that began first above."""
    began: dict[Process, int] = {}
    for lane, _ in lanes:
        began[lane.process] = min(began.get(lane.process, lane.start_ns), lane.start_ns)
    return sorted(kept, key=lambda each: (began[each[0].process], lanes.index(each)))


def _lanes_of(account: ProcessAccount, is_calendar: bool) -> Iterable[_Kept]:
    """The threads of a process, each with how long it was in calls."""
    process = account.process
    moved_ns = _moved_ns(process, is_calendar)
    for thread in process.threads:
        share = account.threads[thread.number]
        start_ns = min(thread.record.start_ns, LATEST_NS)
        end_ns = min(max(thread.record.end_ns or account.latest_ns, start_ns), start_ns + LONGEST_NS)
        lane = Lane(process, thread.number, start_ns + moved_ns, end_ns + moved_ns)
        yield lane, share.wall_ns - share.program_wall_ns


def _moved_ns(process: Process, is_calendar: bool) -> int:
    return process.log.time_ns - process.log.start_ns if is_calendar else 0


class _Laying:
    """Lays the events of all processes into the slices of a time-line."""

    def __init__(self, made: Timeline, is_calendar: bool) -> None:
        self._made = made
        self._is_calendar = is_calendar
        self._left = ONE_BY_ONE_AT_MOST
        self._longest: list[LongCall] = []
        self._consolidator = fastest_consolidator()
        self._gathered: Consolidator | None = None  # of blocks, for the parts that the slices have of a time
        self._spread: tuple[Mapping[int, int], int] = {}, 1

    def lay(self, processes: Iterable[Process]) -> None:
        """Lay all of it."""
        for process in processes:
            self._process = process
            self._start_ns = self._made.start_ns - _moved_ns(process, self._is_calendar)
            self._lanes = {
                lane.thread: (place, lane) for place, lane in enumerate(self._made.lanes) if lane.process is process
            }
            self._inside: dict[tuple[int, int], dict[int, int]] = {}
            self._kinds: dict[int, str] = {}
            for block in process.events.blocks() if process.events and self._lanes else ():
                assert process.events is not None
                self._lay_block(block, process.events.layout)
            self._lay_gathered()
        self._made.calls = sorted(self._longest, reverse=True)

    def _lay_block(self, block: Block, layout: Layout) -> None:
        span_ns = block.head.last_ns - block.head.first_ns
        number = len(block.events) // layout.record_bytes
        if span_ns > self._made.slice_ns or number < 32:
            if self._left > 0:
                self._left -= number
                self._one_by_one(block, layout)
                return
            self._made.is_estimated = True
        self._together(block, layout)

    def _together(self, block: Block, layout: Layout) -> None:
        """Add a whole block to the slices that it spans; those that lie within one slice are added at once."""
        first_ns = min(block.head.first_ns, block.head.last_ns)
        span_ns = max(min(block.head.last_ns - first_ns, LONGEST_NS), 1)
        parts = self._parts(first_ns, span_ns)
        is_within = list(parts.values()) == [span_ns]
        spread = (dict.fromkeys(parts, 1), 1) if is_within else (parts, span_ns)
        if not is_within or spread != self._spread:
            self._lay_gathered()
            self._spread, self._gathered = spread, self._consolidator(layout, ("thread", "intrinsic"))
        assert self._gathered
        self._gathered.add(block.events)

    def _lay_gathered(self) -> None:
        """Add the blocks that were put together to their slices."""
        if self._gathered is None:
            return
        sums: dict[tuple[int, int], int] = defaultdict(int)
        for found in self._gathered.records():
            sums[found.key[0], found.key[1]] += found.figures[_SELF_WALL]
        self._gathered, (parts, span_ns) = None, self._spread
        for (thread, intrinsic), self_ns in sums.items():
            if thread in self._lanes:
                slices = self._slices(thread, intrinsic)
                for place, part_ns in parts.items():
                    slices[place] += self_ns * part_ns // span_ns

    def _one_by_one(self, block: Block, layout: Layout) -> None:
        """Add each event to its slices, without the calls inside it."""
        picker = layout.unsigned(_FIELDS).picker(_FIELDS)
        for values in picker.many(block.events):
            start_ns, wall_ns, cpu_ns, inner_ns, thread, call, parent, intrinsic, stack, detail, task = values
            if thread not in self._lanes:
                continue
            slices, parts = self._slices(thread, intrinsic), self._parts(start_ns, wall_ns)
            if task:  # other tasks ran while it was awaited
                for place, part_ns in parts.items():
                    slices[place] += max(wall_ns - inner_ns, 0) * part_ns // wall_ns
                if 2 * inner_ns > wall_ns:  # drawn as a whole it would hide what the thread did meanwhile
                    continue
            else:
                inside = self._inside.pop((thread, call), {})
                for place, part_ns in parts.items():
                    slices[place] += max(part_ns - inside.get(place, 0), 0)
                if parent:
                    self._put_inside(thread, parent, parts)
            self._keep(wall_ns, start_ns - self._start_ns, cpu_ns, thread, intrinsic, stack, detail)

    def _put_inside(self, thread: int, parent: int, parts: Mapping[int, int]) -> None:
        if len(self._inside) > _WAITING_AT_MOST:
            self._inside.clear()
        around = self._inside.setdefault((thread, parent), {})
        for place, part_ns in parts.items():
            around[place] = around.get(place, 0) + part_ns

    def _keep(
        self, wall_ns: int, start_ns: int, cpu_ns: int, thread: int, intrinsic: int, stack: int, detail: int
    ) -> None:
        """Keep the call if it is one of the longest."""
        if len(self._longest) < CALLS_AT_MOST:
            call = LongCall(wall_ns, start_ns, cpu_ns, self._lanes[thread][0], intrinsic, stack, detail)
            heapq.heappush(self._longest, call)
        elif wall_ns > self._longest[0].wall_ns:
            call = LongCall(wall_ns, start_ns, cpu_ns, self._lanes[thread][0], intrinsic, stack, detail)
            heapq.heapreplace(self._longest, call)

    def _parts(self, start_ns: int, wall_ns: int) -> dict[int, int]:
        """The part of a period of time in each slice; parts before the first slice or after the last are ignored."""
        made = self._made
        begin = start_ns - self._start_ns
        end = begin + wall_ns
        first, last = begin // made.slice_ns, end // made.slice_ns
        if first == last:
            return {first: wall_ns} if 0 <= first < made.slices else {}
        first, last = max(first, 0), min(last, made.slices - 1)
        return {
            place: max(min(end, (place + 1) * made.slice_ns) - max(begin, place * made.slice_ns), 0)
            for place in range(first, last + 1)
        }

    def _slices(self, thread: int, intrinsic: int) -> list[int]:
        """The slices of a thread for the kind of an intrinsic."""
        if intrinsic not in self._kinds:
            self._kinds[intrinsic] = self._process.intrinsic(intrinsic).kind
        kinds = self._lanes[thread][1].kinds
        kind = self._kinds[intrinsic]
        if kind not in kinds:
            kinds[kind] = [0] * self._made.slices
        return kinds[kind]
