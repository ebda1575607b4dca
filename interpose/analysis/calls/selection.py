"""Which events are looked at: those that began in the windows of a label."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from interpose.experiments.format.blocks import Block
from interpose.experiments.format.layout import Bytes, Layout
from interpose.experiments.metadata.labels import Window, is_in

Selection = Callable[[Block, Layout], Bytes]


def begun_in(label: Sequence[Window]) -> Selection:
    """Those events that began in one of the windows."""

    def select(block: Block, layout: Layout) -> Bytes:
        first_ns, last_ns = block.head.first_ns, block.head.last_ns
        if any(window.start_ns <= first_ns and last_ns < window.stop_ns for window in label):
            return block.events
        if not any(window.start_ns <= last_ns and first_ns < window.stop_ns for window in label):
            return b""
        size = layout.record_bytes
        starts = layout.picker(("start_ns",)).many(block.events)
        wanted = [number for number, (start_ns,) in enumerate(starts) if is_in(label, start_ns)]
        return b"".join(bytes(block.events[number * size : (number + 1) * size]) for number in wanted)

    return select
