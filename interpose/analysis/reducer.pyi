"""The compiled reducer: the same sums as `interpose.analysis.reduce.PlainReducer`, from the same bytes."""

from collections.abc import Callable

from interpose.experiments.layout import Bytes, Layout

class CompiledReducer:
    def __init__(
        self,
        layout: Layout,
        by: tuple[str, ...],
        group_of: Callable[[tuple[int, ...]], int] | None = None,
        unsettled_at_most: int = ...,
    ) -> None: ...
    @property
    def impossible(self) -> int: ...
    def add(self, events: Bytes) -> None: ...
    def sums(self) -> dict[tuple[int, ...], tuple[int, ...]]: ...
