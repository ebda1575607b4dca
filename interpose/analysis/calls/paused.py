"""The time that each thread spent in pauses of the recording, outside of its calls.

Nothing is recorded during a pause, so its CPU time is estimated: what the thread used from the last reading of its
clock before the end of the pause to the first one after it, in proportion to the wall time.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from interpose.analysis.calls.in_progress import InProgress, contains_code, without_code
from interpose.experiments.format.blocks import Place
from interpose.experiments.format.records import Event
from interpose.experiments.metadata.pauses import NO_END_NS, Pauses
from interpose.experiments.model.process import Process


class Reading(NamedTuple):
    """A thread's clock when one of its calls began or ended, and whether the thread was inside a call from then on."""

    wall_ns: int
    cpu_ns: int
    is_inside: bool = False
    is_begin: bool = False

    @property
    def order(self) -> tuple[int, int, bool, bool]:
        """At one instant, calls end before others begin, and inner ones before the outer ones."""
        return self.wall_ns, self.cpu_ns, self.is_begin, not self.is_inside


class Lived(NamedTuple):
    """When a thread began, or its oldest call that a ring still has, and when it was last known."""

    start: Reading
    end: Reading


class Paused(NamedTuple):
    """The wall time and the CPU time of pauses."""

    wall_ns: int = 0
    cpu_ns: int = 0


NOT_PAUSED = Paused()


class PausedPart(NamedTuple):
    """A part of a pause outside of calls, and the CPU time of its thread in it."""

    begin_ns: int
    end_ns: int
    cpu_ns: int


class PausedTimes:
    """What each thread spent in pauses outside of its calls."""

    def __init__(self, parts: Mapping[int, Iterable[PausedPart]]) -> None:
        self._parts = {thread: sorted(each) for thread, each in parts.items()}
        self._ends = {thread: [each.end_ns for each in found] for thread, found in self._parts.items()}

    def __bool__(self) -> bool:
        return any(self._parts.values())

    def within(self, thread: int, begin_ns: int = 0, end_ns: int = NO_END_NS) -> Paused:
        """What `thread` spent there between the two instants. Of a piece of a part, CPU time is in proportion."""
        wall_ns = cpu_ns = 0
        parts = self._parts.get(thread, ())
        for place in range(bisect_right(self._ends.get(thread, ()), begin_ns), len(parts)):
            each = parts[place]
            if each.begin_ns >= end_ns:
                break
            part_ns = min(each.end_ns, end_ns) - max(each.begin_ns, begin_ns)
            wall_ns += part_ns
            cpu_ns += each.cpu_ns * part_ns // (each.end_ns - each.begin_ns)
        return Paused(wall_ns, cpu_ns)


def paused_times(
    process: Process, pauses: Pauses, lived: Mapping[int, Lived], open_calls: Sequence[InProgress]
) -> PausedTimes:
    """How long the threads of `process`, with the lifetimes `lived`, were paused outside of their calls."""
    if not pauses:
        return PausedTimes({})
    events = _events_beside(process, pauses)
    in_progress: dict[int, list[InProgress]] = defaultdict(list)
    for call in open_calls:
        in_progress[call.thread].append(call)
    return PausedTimes(
        {
            number: _parts(pauses, _readings(process, pauses, events[number], each, in_progress[number]), each)
            for number, each in lived.items()
        }
    )


def _parts(pauses: Pauses, readings: list[Reading], lived: Lived) -> Iterator[PausedPart]:
    """A pause between two readings is outside of calls, unless the thread was inside one from the first reading on."""
    instants = [each.wall_ns for each in readings]
    for begin_ns, end_ns in pauses.overlapping(lived.start.wall_ns, lived.end.wall_ns):
        first, last = bisect_right(instants, begin_ns) - 1, bisect_left(instants, end_ns)
        for one, other in pairwise(readings[max(first, 0) : last + 1]):
            from_ns, until_ns = max(begin_ns, one.wall_ns), min(end_ns, other.wall_ns)
            if not one.is_inside and until_ns > from_ns:
                used_ns = max(other.cpu_ns - one.cpu_ns, 0)
                yield PausedPart(from_ns, until_ns, used_ns * (until_ns - from_ns) // (other.wall_ns - one.wall_ns))


def _readings(
    process: Process, pauses: Pauses, events: list[Event], lived: Lived, open_calls: list[InProgress]
) -> list[Reading]:
    """The readings of a thread's clock, in the order of time, from the beginning to the end of the thread. What runs
    within calls in progress that contain code of the program is code. The thread is not inside an await that is
    suspended: its own time is too short for the pause."""
    waits = next(iter(without_code(process, open_calls)), None)
    containers = {0, *(each.call.call for each in open_calls if contains_code(process, each.call))}
    found = [lived.start, lived.end]
    for each in events:
        end_ns, is_around = each.start_ns + each.wall_ns, each.parent not in containers
        is_inside = is_around or pauses.within(each.start_ns, end_ns) <= each.wall_ns - each.inner_wall_ns
        found.append(Reading(each.start_ns, each.start_cpu_ns, is_inside, True))
        found.append(Reading(end_ns, each.start_cpu_ns + each.cpu_ns, is_around))
    if waits:
        found = [each for each in found if each.wall_ns <= waits.call.start_ns]
        found += [Reading(waits.call.start_ns, waits.call.start_cpu_ns, True, True), lived.end]
    return list(_rising(sorted(found, key=lambda each: each.order)))


def _rising(readings: list[Reading]) -> Iterator[Reading]:
    """The readings; the CPU time of an await is that of its steps, so others may have used more by its end."""
    most_ns = 0
    for each in readings:
        most_ns = max(most_ns, each.cpu_ns)
        yield each._replace(cpu_ns=most_ns)


def _events_beside(process: Process, pauses: Pauses) -> dict[int, list[Event]]:
    """The events of each thread in the blocks beside pauses."""
    found: dict[int, list[Event]] = defaultdict(list)
    if process.events is None:
        return found
    for place in _blocks_beside(process, pauses):
        block = process.events.block(place)
        for event in process.events.events(block) if block else ():
            found[event.thread].append(event)
    return found


def _blocks_beside(process: Process, pauses: Pauses) -> Iterator[Place]:
    """Of each thread, the last block that began before the end of a pause, and the next one."""
    assert process.events is not None
    heads: dict[int, list[tuple[int, Place]]] = defaultdict(list)
    for place, head in process.events.heads():
        heads[head.thread].append((head.first_ns, place))
    for blocks in heads.values():
        blocks.sort()
        begins = [first_ns for first_ns, _ in blocks]
        wanted = {
            number
            for _, end_ns in pauses.overlapping(0, NO_END_NS)
            for number in (bisect_left(begins, end_ns) - 1, bisect_left(begins, end_ns))
        }
        yield from (blocks[number][1] for number in sorted(wanted) if 0 <= number < len(blocks))
