"""The part of a thread's time before the oldest events that a ring still has.

A thread's blocks leave the ring in the order in which they were written, so the remaining events are its last ones,
without gaps. The head of the oldest block that a thread began has its elapsed time until then, without the time of
calls then in progress, because their events are in that block or later.
"""

from __future__ import annotations

from typing import NamedTuple

from interpose.analysis.consolidation.sums import MOST
from interpose.experiments.format.blocks import Block, EventFile, Place
from interpose.experiments.model.process import Process


class Before(NamedTuple):
    """The times of a thread, and of recording it, when the oldest block that it began was begun."""

    wall_ns: int = 0
    cpu_ns: int = 0
    own_wall_ns: int = 0
    own_cpu_ns: int = 0


NOTHING = Before()
ALL = Before(MOST, MOST, MOST, MOST)


def before_the_ring(process: Process) -> dict[int, Before]:
    """The time before the oldest events, by thread; without threads of which nothing was overwritten."""
    if not process.overwritten or process.events is None:
        return {}
    found: dict[int, Before] = {}
    for block in process.events.blocks():
        began = _began(process.events, block)
        for thread in _threads_of(process.events, block, began):
            lost = thread == began and block.head.recorded > 0
            found.setdefault(thread, _before(block) if lost else NOTHING)
    gone = [each.number for each in process.threads if each.record.recorded and each.number not in found]
    return {number: before for number, before in found.items() if before != NOTHING} | dict.fromkeys(gone, ALL)


def held_since_ns(process: Process) -> int:
    """The monotonic instant since which the ring has all calls of all threads, by its oldest blocks; 0 if nothing was
    overwritten."""
    if not process.overwritten or process.events is None:
        return 0
    oldest: dict[int, tuple[int, Place]] = {}
    for place, head in process.events.heads():
        if head.used:
            oldest[head.thread] = min(oldest.get(head.thread, (head.sequence, place)), (head.sequence, place))
    blocks = [process.events.block(place) for _, place in oldest.values()]
    firsts = [next(process.events.events(block), None) for block in blocks if block and block.head.recorded]
    return max((first.start_ns + first.wall_ns for first in firsts if first), default=0)


def _before(block: Block) -> Before:
    head = block.head
    return Before(head.before_wall_ns, head.before_cpu_ns, head.own_wall_ns, head.own_cpu_ns)


def _began(events: EventFile, block: Block) -> int:
    """The thread that began the block: its first event is of it. The last to write may be another."""
    first = next(events.events(block), None)
    return first.thread if first else block.head.thread


def _threads_of(events: EventFile, block: Block, began: int) -> list[int]:
    """The threads that have written into the block, the one that began it first."""
    if began == block.head.thread:
        return [began]
    return list(dict.fromkeys([began, *(event.thread for event in events.events(block)), block.head.thread]))
