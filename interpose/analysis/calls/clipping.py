"""Calls that reach beyond the windows of a label: the part inside the windows."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from interpose.experiments.format.records import BlockHead, Event
from interpose.experiments.metadata.labels import Window
from interpose.experiments.model.process import Process

Call = tuple[int, int]  # thread and number


class Clip(NamedTuple):
    """The times of a call within the windows, by the names of an event's fields. CPU times are estimated: they are as
    much of the whole as the wall time is."""

    start_ns: int
    wall_ns: int
    cpu_ns: int
    inner_wall_ns: int
    inner_cpu_ns: int


def clips(process: Process, label: Sequence[Window]) -> dict[Call, Clip]:
    """The calls of `process` that are partly in the windows, by thread and number."""
    reaching = {(event.thread, event.call): event for event in _at_edges(process, label)}
    inside: dict[Call, list[int]] = defaultdict(lambda: [0, 0, 0, 0])
    for event in _during(process, list(reaching.values())):
        around = event.thread, event.parent
        if around in reaching:
            wall_ns = _within(event, label)
            told = (event.wall_ns, event.cpu_ns, wall_ns, _part(event.cpu_ns, wall_ns, event.wall_ns))
            inside[around] = [known + more for known, more in zip(inside[around], told, strict=True)]
    return {call: _clip(event, inside[call], label) for call, event in reaching.items()}


def _clip(event: Event, inside: Sequence[int], label: Sequence[Window]) -> Clip:
    """`inside` are the wall and CPU times of the inner calls, in whole and within the windows; the rest of an awaited
    call's suspension is divided in proportion."""
    wall_ns = _within(event, label)
    whole_wall_ns, whole_cpu_ns, inner_wall_ns, inner_cpu_ns = inside
    inner_wall_ns += _part(max(event.inner_wall_ns - whole_wall_ns, 0), wall_ns, event.wall_ns)
    inner_cpu_ns += _part(max(event.inner_cpu_ns - whole_cpu_ns, 0), wall_ns, event.wall_ns)
    inner_wall_ns = min(inner_wall_ns, wall_ns)
    inner_cpu_ns = min(inner_cpu_ns, inner_wall_ns)
    cpu_ns = min(_part(event.cpu_ns, wall_ns, event.wall_ns), inner_cpu_ns + wall_ns - inner_wall_ns)
    start_ns = max(event.start_ns, min(each.start_ns for each in label if _overlap(event, each)))
    return Clip(start_ns, wall_ns, cpu_ns, inner_wall_ns, min(inner_cpu_ns, cpu_ns))


def _part(number: int, part: int, whole: int) -> int:
    return number * part // whole if whole else 0


def _overlap(event: Event, window: Window) -> int:
    until_ns = min(event.start_ns + event.wall_ns, window.stop_ns)
    return max(until_ns - max(event.start_ns, window.start_ns), 0)


def _within(event: Event, label: Sequence[Window]) -> int:
    return sum(_overlap(event, window) for window in label)


def _at_edges(process: Process, label: Sequence[Window]) -> Iterator[Event]:
    """The calls of which a part, but not all, is in the windows."""
    edges = [instant for window in label for instant in window]
    for event in _events(process, lambda head: any(head.first_ns < edge < head.last_ns for edge in edges)):
        if 0 < _within(event, label) < event.wall_ns:
            yield event


def _during(process: Process, calls: Sequence[Event]) -> Iterator[Event]:
    """The events in the blocks that were written while these calls were in progress."""
    if not calls:
        return iter(())
    first_ns, last_ns = min(each.start_ns for each in calls), max(each.start_ns + each.wall_ns for each in calls)
    return _events(process, lambda head: head.first_ns < last_ns and first_ns < head.last_ns)


def _events(process: Process, is_wanted: Callable[[BlockHead], bool]) -> Iterator[Event]:
    for place, head in process.events.heads() if process.events else ():
        block = process.events.block(place) if process.events and is_wanted(head) else None
        if process.events and block:
            yield from process.events.events(block)
