"""Calls that a filter chooses one by one, and the calls around them.

A call that is not chosen but contains chosen ones becomes a shell without times. So the chosen ones keep their nesting,
and no time of a function counts twice.
"""

from __future__ import annotations

from collections.abc import Callable

from interpose.analysis.calls.selection import Selection, Selects, with_fields
from interpose.experiments.format.blocks import Block
from interpose.experiments.format.layout import Bytes, Layout, Unpacker
from interpose.experiments.format.records import Event
from interpose.experiments.model.process import Process

Keeps = Callable[[Event, int], bool]  # of an event, and how many recorded calls it was made inside (not known: 0)
SHELL = 1 << 31  # in the number of an intrinsic
WAITING_AT_MOST = 100_000
_EMPTIED = ("wall_ns", "cpu_ns", "inner_wall_ns", "inner_cpu_ns", "bytes", "error")


def is_shell(intrinsic: int) -> bool:
    """Whether that is of calls that were not chosen."""
    return bool(intrinsic & SHELL)


def call_of(intrinsic: int) -> int:
    """The number of the intrinsic, of a shell too."""
    return intrinsic & ~SHELL


def selecting(keeps_of: Callable[[Process], Keeps]) -> Selects:
    """What selects the events of each process: those that `keeps_of` keeps, and the shells around them."""
    return lambda process: _selection(keeps_of(process))


def _selection(keeps: Keeps) -> Selection:
    """What gives the events of a block that are kept, and the shells around them; for the blocks of one process."""
    awaited: set[tuple[int, int]] = set()

    def select(block: Block, layout: Layout) -> Bytes:
        size, made = layout.record_bytes, bytearray()
        for number, event in enumerate(Unpacker(layout, Event).many(block.events)):
            is_kept = keeps(event, 0)
            holds_some = (event.thread, event.call) in awaited
            awaited.discard((event.thread, event.call))
            if not is_kept and not holds_some:
                continue
            if event.parent and len(awaited) < WAITING_AT_MOST:
                awaited.add((event.thread, event.parent))
            record = block.events[number * size : (number + 1) * size]
            made += record if is_kept else _emptied(record, layout)
        return bytes(made)

    return select


def _emptied(record: Bytes, layout: Layout) -> bytes:
    """The record of a shell."""
    (intrinsic,) = layout.picker(("intrinsic",)).one(record)
    return with_fields(record, layout, dict.fromkeys(_EMPTIED, 0) | {"intrinsic": intrinsic | SHELL})
