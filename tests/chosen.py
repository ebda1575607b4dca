"""What sampling by transaction recorded of a process."""

from __future__ import annotations

from collections import Counter

from tracing import Traced

from interpose.experiments.format.records import Event
from interpose.experiments.model.process import Process


class Chosen:
    """What was recorded of a process: transactions that no other is around, and what was called, by what was around."""

    def __init__(self, done: Traced, process: Process | None = None) -> None:
        self.process = process or done.experiment.founder
        events = done.events(process=self.process)
        by_number = {(event.thread, event.call): event for event in events}
        # Of the outermost transactions, in the order of their beginnings: name and whether it was kept.
        self.fates: list[tuple[str, bool]] = []
        # Of database calls: the statement, and the outermost transaction's name and fate.
        self.calls: Counter[tuple[str, str, bool]] = Counter()
        # The same statements in their order, by the outermost transaction; of each that was passed over, and of what is
        # outside of any (0), too.
        self.within: dict[tuple[int, int], list[str]] = {}
        for event in events:
            self._take(event, by_number)

    def _take(self, event: Event, by_number: dict[tuple[int, int], Event]) -> None:
        chain = [event]
        while outer := by_number.get((event.thread, chain[-1].parent)):
            chain.append(outer)
        intrinsics = [self.process.intrinsic(each.intrinsic) for each in chain]
        are = [place for place, each in enumerate(intrinsics) if each.transaction == "is"]
        fate, number = ("", True), (0, 0)
        if are:
            outermost = chain[are[-1]]
            fate = (self.process.string(outermost.detail), not intrinsics[are[-1]].passed_over)
            number = (outermost.thread, outermost.call)
        if are == [0]:
            self.fates.append(fate)
            self.within.setdefault(number, [])
        if intrinsics[0].name == "sqlite3.Connection.execute":
            statement = self.process.string(event.detail).rpartition(" ")[2]
            self.calls[(statement, *fate)] += 1
            self.within.setdefault(number, []).append(statement)

    def counts(self, name: str) -> tuple[int, int]:
        """How many transactions of the name were kept, and how many there were."""
        fates = [kept for each, kept in self.fates if each == name]
        return sum(fates), len(fates)
