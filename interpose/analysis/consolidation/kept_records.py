"""Keeps consolidated records of a process in its experiment, while it runs and after its end."""

from __future__ import annotations

from collections.abc import Iterable

from interpose.analysis.consolidation.consolidate import (
    Consolidator,
    as_kept,
    fastest_consolidator,
    go_on_serving,
    name_what_was_open,
)
from interpose.analysis.consolidation.records import Records
from interpose.analysis.consolidation.sums import DETAILS_AT_MOST, FIGURES
from interpose.analysis.time.lifetimes import lives_of, paused_outside
from interpose.analysis.transactions.in_progress import unended_of
from interpose.analysis.transactions.tracking import Details, Tracker, roles_of
from interpose.errors import ExperimentError
from interpose.experiments.format import consolidated
from interpose.experiments.format.consolidated import Consolidated, Found
from interpose.experiments.format.layout import Bytes, Unpacker
from interpose.experiments.format.records import Event
from interpose.experiments.format.sequences import Ranges
from interpose.experiments.metadata.pauses import Pauses
from interpose.experiments.model.process import Process

BY = ("thread", "intrinsic", "stack", "detail", "error")  # all that any report is by
SLOWEST = 100


def slowest_wanted(process: Process) -> int:
    """How many of the slowest calls its settings say are kept whole."""
    said = process.log.settings.get("INTERPOSE_SLOWEST", "")
    return int(said) if said.isascii() and said.isdigit() and len(said) < 5 else SLOWEST


class Keeper:
    """Consolidates the blocks of a process as they come, by all fields that reports use, and keeps the records.

    Existing records of it are continued. Raises ExperimentError if these cannot be read.
    """

    def __init__(
        self,
        process: Process,
        pauses: Pauses,
        slowest_at_most: int = SLOWEST,
        consolidator: type[Consolidator] | None = None,
        details_at_most: int = DETAILS_AT_MOST,
    ) -> None:
        assert process.events is not None
        self._layout = process.events.layout
        self._slowest_at_most = slowest_at_most
        process.forget_consolidated()
        self._before = process.consolidated
        if self._before is None and process.stamp_of_consolidated():
            raise ExperimentError(f"{process.place}/{consolidated.NAME}: cannot be read, and was not changed")
        self._tracker = Tracker({})
        self._tracker.stays_open = True
        made = consolidator or fastest_consolidator()
        self._consolidator: Consolidator = made(
            self._layout,
            BY,
            histograms=True,
            tracker=self._tracker,
            slowest_at_most=slowest_at_most,
            details_at_most=details_at_most,
        )
        self.blocks = Ranges(self._before[0].blocks.found if self._before else ())
        self.follow(process, pauses)
        if self._before:
            self._tracker.go_on_with(self._before[0].open)
            go_on_serving(self._tracker, as_kept(*self._before))

    def follow(self, process: Process, pauses: Pauses | None = None) -> None:
        """Know the process as it is now: its intrinsics and its threads, and when recording was paused."""
        self._consolidator.know(roles_of(process))
        paused = paused_outside(process, pauses) if pauses else None
        self._tracker.follow(lives_of(process), paused, Details(process))
        if self._before:
            self._tracker.go_on_from(self._before[0].until)

    def add(self, sequence: int, events: Bytes) -> int:
        """Take in the events of a block, unless they are in the records already; returns how many."""
        if sequence in self.blocks:
            return 0
        self._consolidator.add(events)
        self.blocks.add(sequence)
        return len(events) // self._layout.record_bytes

    def write(self, directory: str, ended: Process | None = None) -> None:
        """Write what is known so far into `directory`. Raises OSError.

        More can be added, unless the process is given because it has ended.
        """
        if ended:
            self._tracker.unended = unended_of(ended)
        found: Iterable[Found] = (self._consolidator if ended else self._consolidator.copied()).records()
        if self._before:
            records = as_kept(*self._before)
            name_what_was_open(records, self._tracker)
            records.take_in(Records(BY, found))
            found = records.found()
        said = Consolidated(BY, FIGURES, self.blocks, open=self._tracker.open_states(), slowest=self._slowest())
        consolidated.write(directory, said, found)

    def _slowest(self) -> list[dict[str, int]]:
        unpack = Unpacker(self._layout, Event)
        found = [event._asdict() for record in self._consolidator.slowest() for event in unpack.many(record)]
        found += self._before[0].slowest if self._before else []
        return sorted(found, key=lambda event: -event.get("wall_ns", 0))[: self._slowest_at_most]


def keep(process: Process, pauses: Pauses, slowest_at_most: int = SLOWEST) -> int:
    """Keep the records of a process that has ended; returns how many calls they have more. Raises OSError."""
    if process.events is None:
        return 0
    keeper = Keeper(process, pauses, slowest_at_most)
    calls = sum(keeper.add(block.head.sequence, block.events) for block in process.events.blocks())
    if calls or process.consolidated is None:
        keeper.write(process.directory, ended=process)
    return calls
