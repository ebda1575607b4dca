"""Keeping consolidated records of a process in its experiment, whether it has ended or goes on."""

from __future__ import annotations

from interpose.analysis.consolidate import Consolidator, fastest_consolidator
from interpose.analysis.lives import lives_of
from interpose.analysis.sums import FIGURES
from interpose.analysis.tracking import Tracker, roles_of
from interpose.experiments import consolidated
from interpose.experiments.consolidated import Consolidated
from interpose.experiments.layout import Bytes, Unpacker
from interpose.experiments.pauses import Pauses
from interpose.experiments.process import Process
from interpose.experiments.records import Event
from interpose.experiments.sequences import Ranges

BY = ("thread", "intrinsic", "stack", "detail", "error")  # all that any report is by
SLOWEST = 100


class Keeper:
    """Consolidates the blocks of a process as they come, by all fields that reports are by, and keeps the records."""

    def __init__(
        self,
        process: Process,
        pauses: Pauses,
        slowest_at_most: int = SLOWEST,
        consolidator: type[Consolidator] | None = None,
    ) -> None:
        assert process.events is not None
        self._layout = process.events.layout
        self._tracker = Tracker(lives_of(process), pauses)
        made = consolidator or fastest_consolidator()
        self._consolidator: Consolidator = made(
            self._layout,
            BY,
            histograms=True,
            tracker=self._tracker,
            roles=roles_of(process),
            slowest_at_most=slowest_at_most,
        )
        self.blocks = Ranges()

    def follow(self, process: Process) -> None:
        """Know the process as it is now: its intrinsics and its threads."""
        self._consolidator.know(roles_of(process))
        self._tracker.follow(lives_of(process))

    def add(self, sequence: int, events: Bytes) -> None:
        """Take in the events of a block."""
        self._consolidator.add(events)
        self.blocks.add(sequence)

    def write(self, directory: str) -> None:
        """Keep what is known so far in `directory`; more can be added. Raises OSError."""
        so_far = self._consolidator.copied()
        said = Consolidated(BY, FIGURES, self.blocks, self._tracker.until(), list(self._slowest()))
        consolidated.write(directory, said, so_far.records())

    def _slowest(self) -> list[dict[str, int]]:
        unpack = Unpacker(self._layout, Event)
        return [event._asdict() for record in self._consolidator.slowest() for event in unpack.many(record)]


def keep(process: Process, pauses: Pauses, slowest_at_most: int = SLOWEST) -> int:
    """Keep the records of a process that has ended; gives how many calls they are of. Raises OSError."""
    if process.events is None:
        return 0
    keeper = Keeper(process, pauses, slowest_at_most)
    size_bytes = process.events.layout.record_bytes
    calls = 0
    for block in process.events.blocks():
        keeper.add(block.head.sequence, block.events)
        calls += len(block.events) // size_bytes
    keeper.write(process.directory)
    return calls
