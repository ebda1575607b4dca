"""The events of an experiment in the order of their beginnings, holding no more of them than overlap.

Blocks contain events in the order of their ends. A block's head says when its earliest event began. So blocks are read
one after another and merged; an event is returned once no unread block can contain an earlier one.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import count, groupby
from typing import NamedTuple

from interpose.analysis.recording.ending import ending
from interpose.experiments.format.blocks import Place
from interpose.experiments.format.records import BlockHead, Event
from interpose.experiments.model.experiment import Experiment
from interpose.experiments.model.process import Process

ENDED = "ended"
HasWanted = Callable[[Process, Sequence[Event]], bool]
_DEEPEST = 100


class Traced(NamedTuple):
    """An event of a process, and the number of recorded calls around it.

    `state` is `ended`; for a call in progress it says how its process ended (as in `Ending`), and the event has no
    times. `starting` is the number of calls of the interpreter's start that it combines, or 0.
    """

    process: Process
    event: Event
    depth: int
    state: str
    starting: int = 0


class _Entry(NamedTuple):
    """An event with its sorting key: its beginning, then its thread and number; every `serial` is unique."""

    start_ns: int
    place: int
    thread: int
    call: int
    serial: int
    event: Event
    state: str


class _Waiting(NamedTuple):
    """A block that is still to be read, sorted by the instant `at_ns`."""

    at_ns: int
    process: int
    place: Place


def trace(experiment: Experiment, since_ns: int = 0, has_wanted: HasWanted | None = None) -> Iterator[Traced]:
    """The events that began at the monotonic `since_ns` or later, in the order of their beginnings.

    `has_wanted` says whether one of the events of a block is wanted. Most of those in other blocks are left out; the
    rest have the depth that they have among all.
    """
    entries = _Entries(experiment, has_wanted)
    waiting = sorted(entries.blocks(lambda head: head.first_ns, since_ns))
    return _nested(experiment, (entry for entry in _merged(entries, waiting) if entry.start_ns >= since_ns))


def last(experiment: Experiment, number: int, since_ns: int = 0) -> Iterator[Traced]:
    """The last `number` of these; blocks that ended before they began are not read."""
    kept: list[_Entry] = []
    entries = _Entries(experiment)
    for batch in _backwards(entries, kept, number, since_ns):
        for entry in batch:
            if entry.start_ns < since_ns:
                continue
            if len(kept) < number:
                heapq.heappush(kept, entry)
            elif kept:
                heapq.heappushpop(kept, entry)
    return _nested(experiment, sorted(kept))


def slowest(experiment: Experiment) -> Iterator[Traced]:
    """The events that were kept whole beside consolidated records, process by process."""
    nothing = dict.fromkeys(Event._fields, 0)
    for process in experiment.processes:
        for kept in process.consolidated[0].slowest if process.consolidated else ():
            known = {name: number for name, number in kept.items() if name in nothing}
            event = Event(**{**nothing, **known})
            yield Traced(process, event, int(event.parent != 0), ENDED)


def with_one_start(rows: Iterable[Traced]) -> Iterator[Traced]:
    """The events, with one in the place of those that follow each other of the interpreter's own start."""
    for of, found in groupby(rows, lambda row: row.process if row.process.is_start_up(row.event.stack) else None):
        if of is None:
            yield from found
        else:
            yield _together(list(found))


def _together(rows: Sequence[Traced]) -> Traced:
    """One event with the times of those that are in no other."""
    first, outer = rows[0], [row.event for row in rows if row.depth == rows[0].depth]
    sums = {name: sum(getattr(each, name) for each in outer) for name in ("wall_ns", "cpu_ns")}
    inside = dict.fromkeys(("inner_wall_ns", "inner_cpu_ns", "bytes", "detail", "error"), 0)
    return first._replace(event=first.event._replace(**sums, **inside), state=ENDED, starting=len(rows))


class _Entries:
    """Returns the events of an experiment as entries, block by block."""

    def __init__(self, experiment: Experiment, has_wanted: HasWanted | None = None) -> None:
        self._has_wanted = has_wanted
        self._processes = experiment.processes
        self._serial = count()

    def blocks(self, instant: Callable[[BlockHead], int], since_ns: int) -> Iterator[_Waiting]:
        """The blocks in which something ended at `since_ns` or later, with an instant of each."""
        for place, process in enumerate(self._processes):
            for found, head in process.events.heads() if process.events else ():
                if head.last_ns >= since_ns:
                    yield _Waiting(instant(head), place, found)

    def of_block(self, waiting: _Waiting) -> Iterator[_Entry]:
        """The events of a block."""
        process = self._processes[waiting.process]
        block = process.events.block(waiting.place) if process.events else None
        found = process.events.events(block) if process.events and block else ()
        for event in self._needed(process, list(found), self._has_wanted) if self._has_wanted else found:
            yield self._entry(waiting.process, event, ENDED)

    @staticmethod
    def _needed(process: Process, found: Sequence[Event], has_wanted: HasWanted) -> Sequence[Event]:
        """The events of a block if one of them is wanted. Otherwise those that may be around calls of another: they
        began before the first of the block ended, or a task made them, whose calls may end after what is around them.
        """
        if has_wanted(process, found):
            return found
        first_ns = found[0].start_ns + found[0].wall_ns if found else 0
        return [event for event in found if event.start_ns <= first_ns or event.task]

    def in_progress(self) -> Iterator[_Entry]:
        """The calls in progress, as events without times."""
        for place, process in enumerate(self._processes):
            for event in open_events(process):
                yield self._entry(place, event, ending(process).state)

    def _entry(self, place: int, event: Event, state: str) -> _Entry:
        return _Entry(event.start_ns, place, event.thread, event.call, next(self._serial), event, state)


def _merged(entries: _Entries, waiting: Iterable[_Waiting]) -> Iterator[_Entry]:
    ready = sorted(entries.in_progress())
    for block in waiting:
        while ready and ready[0].start_ns < block.at_ns:
            yield heapq.heappop(ready)
        for entry in entries.of_block(block):
            heapq.heappush(ready, entry)
    while ready:
        yield heapq.heappop(ready)


def _backwards(
    entries: _Entries, kept: list[_Entry], number: int, since_ns: int
) -> Iterator[Iterable[_Entry]]:
    """Batches of entries, the latest blocks first, until all `kept` began after what is left had ended."""
    yield entries.in_progress()
    for block in sorted(entries.blocks(lambda head: head.last_ns, since_ns), reverse=True):
        if len(kept) >= number and (not kept or block.at_ns < kept[0].start_ns):
            return
        yield entries.of_block(block)


def open_events(process: Process) -> Iterator[Event]:
    """The calls in progress, as events without times; of each thread the outermost first."""
    nothing = Event(*[0] * len(Event._fields))
    for thread in process.threads:
        parent = 0
        for call in thread.open_calls:
            yield nothing._replace(
                start_ns=call.start_ns,
                thread=thread.number,
                call=call.call,
                parent=parent,
                intrinsic=call.intrinsic,
                stack=call.stack,
                detail=call.detail,
            )
            parent = call.call


def _nested(experiment: Experiment, entries: Iterable[_Entry]) -> Iterator[Traced]:
    """Each event with its depth: one more than its parent's, which began before it in the same thread."""
    inside: dict[tuple[int, int], list[tuple[int, int]]] = {}
    for entry in entries:
        calls = inside.setdefault((entry.place, entry.thread), [])
        while calls and calls[-1][0] != entry.event.parent:
            calls.pop()
        depth = calls[-1][1] + 1 if calls else int(entry.event.parent != 0)
        if len(calls) < _DEEPEST:
            calls.append((entry.call, depth))
        yield Traced(experiment.processes[entry.place], entry.event, depth, entry.state)
