"""What of a thread's time lies before the oldest events that a ring still has.

A thread's blocks go out of the ring in the order in which it wrote them, so what is left of its events is the end of
them, whole. The head of the oldest block that it began tells how much of its time had gone by then; what the calls
that were in progress had taken of that is left out there, for their events are in that block or come later.
"""

from __future__ import annotations

from typing import NamedTuple

from interpose.analysis.consolidation.sums import MOST
from interpose.experiments.format.blocks import Block, EventFile
from interpose.experiments.model.process import Process


class Before(NamedTuple):
    """What a thread had taken, and recording of it, when its oldest events that are left were begun."""

    wall_ns: int = 0
    cpu_ns: int = 0
    own_wall_ns: int = 0
    own_cpu_ns: int = 0


NOTHING = Before()
ALL = Before(MOST, MOST, MOST, MOST)


def before_the_ring(process: Process) -> dict[int, Before]:
    """By thread, what lies before its oldest events; without those of which nothing was written over."""
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
