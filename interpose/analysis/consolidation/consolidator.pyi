"""The compiled consolidator: the records of `plain_consolidator.PlainConsolidator`, from the same bytes."""

from collections.abc import Mapping

from interpose.analysis.transactions.tracking import Tracker
from interpose.experiments.format.consolidated import Found
from interpose.experiments.format.layout import Bytes, Layout

class CompiledConsolidator:
    def __init__(
        self,
        layout: Layout,
        by: tuple[str, ...],
        histograms: bool = False,
        tracker: Tracker | None = None,
        roles: Mapping[int, int] | None = None,
        waiting_at_most: int = ...,
        records_at_most: int = ...,
        slowest_at_most: int = ...,
        details_at_most: int = ...,
    ) -> None: ...
    @property
    def is_full(self) -> bool: ...
    def add(self, events: Bytes) -> None: ...
    def know(self, roles: Mapping[int, int]) -> None: ...
    def copied(self) -> CompiledConsolidator: ...
    def slowest(self) -> list[bytes]: ...
    def records(self) -> list[Found]: ...
