"""Selects the events of a process in the windows of a label."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from functools import cache
from typing import Any

from interpose.analysis.calls.clipping import Call, Clip, clips
from interpose.experiments.format.blocks import Block
from interpose.experiments.format.layout import Bytes, Layout
from interpose.experiments.metadata.labels import Window, is_in
from interpose.experiments.model.process import Process

Selection = Callable[[Block, Layout], Bytes]
Selects = Callable[[Process], Selection]


class Within:
    """Selects the events of a process in one of the windows; of events that reach beyond it, the part inside.

    `has_clipped` says whether there were such events.
    """

    def __init__(self, label: Sequence[Window]) -> None:
        self._label = label
        self.has_clipped = False

    def __call__(self, process: Process) -> Selection:
        found = clips(process, self._label)
        self.has_clipped = self.has_clipped or bool(found)
        return lambda block, layout: self._selected(block, layout, found)

    def _selected(self, block: Block, layout: Layout, found: Mapping[Call, Clip]) -> Bytes:
        first_ns, last_ns = block.head.first_ns, block.head.last_ns
        if any(window.start_ns <= first_ns and last_ns < window.stop_ns for window in self._label):
            return block.events
        if not any(window.start_ns <= last_ns and first_ns < window.stop_ns for window in self._label):
            return b""
        size, made = layout.record_bytes, bytearray()
        places = layout.picker(("start_ns", "thread", "call")).many(block.events)
        for number, (start_ns, *call) in enumerate(places):
            clip = found.get((call[0], call[1]))
            if clip or is_in(self._label, start_ns):
                record = block.events[number * size : (number + 1) * size]
                made += with_fields(record, layout, clip._asdict()) if clip else record
        return bytes(made)


class NotOfThreads:
    """Selects of what another selects all but the calls of the threads `tids` that run none of the program's own code:
    what libraries do meanwhile. `tids` are the kernel's numbers."""

    def __init__(self, tids: Set[int], others: Selects) -> None:
        self._tids = tids
        self._others = others

    def __call__(self, process: Process) -> Selection:
        selected = self._others(process)
        threads = {each.number for each in process.threads if each.record.tid in self._tids}
        is_own = cache(lambda stack: _has_own_line(process, stack))

        def select(block: Block, layout: Layout) -> Bytes:
            events, size = selected(block, layout), layout.record_bytes
            places = layout.picker(("thread", "stack")).many(events)
            kept = [number for number, (thread, stack) in enumerate(places) if thread not in threads or is_own(stack)]
            return b"".join(events[number * size : (number + 1) * size] for number in kept)

        return select


def _has_own_line(process: Process, stack: int) -> bool:
    site = process.own_line(stack) if stack else None
    return site is not None and site.own


def with_fields(record: Bytes, layout: Layout, values: Mapping[str, int]) -> bytes:
    """The record with other values for those of these fields that it has."""
    made = bytearray(record)
    for name, value in values.items():
        described: Any = layout.fields.get(name)
        if described is not None:
            made[described.offset : described.end] = value.to_bytes(described.end - described.offset, "little")
    return bytes(made)
