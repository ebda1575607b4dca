from collections.abc import Sequence

from interpose.experiments.format.layout import Bytes, Layout

class EventColumns:
    rows: int

    def __init__(self, layout: Layout, names: Sequence[str]) -> None: ...
    def add(self, events: Bytes) -> None: ...
    def take(self) -> dict[str, bytearray]: ...
