"""The context of an analysis: an experiment, which of its calls are selected, and what several analyses share."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property

from interpose.analysis.calls.account import NOTHING, ProcessAccount, Share, account, number_of_statements
from interpose.analysis.calls.idle import idle_waits
from interpose.analysis.calls.selection import Selects
from interpose.analysis.consolidation.consolidate import Consolidator, consolidated
from interpose.analysis.consolidation.records import Records
from interpose.analysis.recording.ending import ending
from interpose.analysis.time.lifetimes import lives_of, paused_outside
from interpose.analysis.transactions.tracking import Details, Tracker
from interpose.experiments.metadata.pauses import Pauses, pauses_of
from interpose.experiments.model.experiment import Experiment
from interpose.experiments.model.process import Process


class Analysis:
    """An experiment, or several read as one, for an analysis.

    `selects` returns, for a process, what selects its events; without it all are selected. A part of the calls has no
    accounts, because it is not a part of any total. `consolidator` is the fastest available one by default.
    """

    def __init__(
        self,
        experiment: Experiment,
        selects: Selects | None = None,
        consolidator: type[Consolidator] | None = None,
    ) -> None:
        self.experiment = experiment
        self.consolidator = consolidator
        self._selects = selects
        self._kept: dict[Process, Records] = {}
        self._accounts: dict[Process, ProcessAccount] = {}
        for process in experiment.processes:
            if ending(process).state == "running":
                process.read_as_of_now()

    @property
    def is_part(self) -> bool:
        """Whether only some calls are selected."""
        return self._selects is not None

    @cached_property
    def pauses(self) -> Pauses:
        """When recording was paused."""
        return pauses_of(self.experiment)

    def records(self, process: Process, by: tuple[str, ...], histograms: bool = False) -> Records:
        """The records of the calls of `process` by the fields `by`. Raises UsageError if these are not kept."""
        return self._records(process, by, histograms, None)

    def records_by_transaction(self, process: Process, by: tuple[str, ...], histograms: bool = False) -> Records:
        """The same, each under its transaction. Raises UsageError if the fields are not kept."""
        kept = self._kept.get(process)
        if kept and kept.can_tell(by, histograms):
            made = Records(by)
            made.take_in(kept)
            return made
        tracker = Tracker(lives_of(process), paused_outside(process, self.pauses), Details(process))
        return self._records(process, by, histograms, tracker)

    def _records(self, process: Process, by: tuple[str, ...], histograms: bool, tracker: Tracker | None) -> Records:
        selection = self._selects(process) if self._selects else None
        made = consolidated(process, by, self.consolidator, selection, histograms, tracker)
        if by[0] == "thread":
            self._account(process, made)
        return made

    def records_of_threads(self, process: Process, fields: tuple[str, ...]) -> Records:
        """The records by the thread first and at least these fields: those that were kept, where they tell enough."""
        kept = self._kept.get(process)
        return kept if kept and set(kept.by).issuperset(fields) else self.records(process, ("thread", *fields))

    def keep(self, process: Process, records: Records) -> None:
        """Let other analyses have `records` of `process`, which are by the thread first, and by transaction."""
        self._kept[process] = records

    @property
    def accounts(self) -> list[ProcessAccount]:
        """What became of the time of each process; none of a part."""
        if self.is_part:
            return []
        for process in self.experiment.processes:
            if process not in self._accounts:
                self.records(process, ("thread", "intrinsic"))
        return [self._accounts[process] for process in self.experiment.processes]

    def _account(self, process: Process, records: Records) -> None:
        """Make the account of `process` unless it is known, so that its events are not read again."""
        if not self.is_part and process not in self._accounts:
            sums = records.by_thread(number_of_statements(process))
            made = account(process, sums, self.pauses)
            waits_ns = idle_waits(process, records, made.open_calls)
            self._accounts[process] = replace(made, idle_waits_ns=waits_ns)

    @property
    def total(self) -> Share:
        """All threads of all processes."""
        return sum((share for each in self.accounts for share in each.threads.values()), NOTHING)

    @property
    def is_running(self) -> bool:
        """Whether a process of it still runs."""
        return any(each.ending.state == "running" for each in self.accounts)
