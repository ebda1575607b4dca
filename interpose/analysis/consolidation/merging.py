"""Merges consolidated records: those of many processes that ran the same program become those of one.

Numbers differ in every process, so everything gets new ones. Two threads remain: the main threads of all processes, as
if one after another, and all other threads. So the threads' times are longer than the process lived: from its first
beginning to its last end in each experiment. Samples are left out: each is of an instant of its thread.
"""

from __future__ import annotations

from typing import Generic, TypeVar

from interpose.analysis.analysis import Analysis
from interpose.analysis.calls.account import Share, account, number_of_statements, recording_ns
from interpose.analysis.consolidation.kept_records import BY, SLOWEST
from interpose.analysis.consolidation.records import Records
from interpose.analysis.consolidation.sums import FIGURES, MOST
from interpose.analysis.recording.life import began_ns, ended_ns
from interpose.analysis.transactions.tracking import (
    BY_DETAIL,
    BY_INTRINSIC,
    BY_STACK,
    IN_PROGRESS,
    NUMBER,
    is_in_progress,
)
from interpose.experiments.format.consolidated import Consolidated, Found
from interpose.experiments.format.records import Event, Overview, SiteRecord, StackRecord, ThreadRecord
from interpose.experiments.maintenance.writing import Written
from interpose.experiments.metadata.log import Log
from interpose.experiments.metadata.map import Intrinsic
from interpose.experiments.model.process import Process
from interpose.experiments.model.stacks import Site

Item = TypeVar("Item")
MAIN, OTHERS = 1, 2
START_NS = 1  # when it all began, on a clock of its own
_KEPT = ("INTERPOSE", "INTERPOSE_KINDS", "INTERPOSE_LEVELS", "INTERPOSE_FILES", "INTERPOSE_SYNC", "INTERPOSE_ROWS")


def is_merged(process: Process) -> bool:
    """Whether `process` is a merged one."""
    return process.log.start_ns == START_NS


class _Numbers(Generic[Item]):
    """Gives each different item a number, from 1."""

    def __init__(self) -> None:
        self._numbers: dict[Item, int] = {}

    def of(self, item: Item) -> int:
        """The number of `item`."""
        return self._numbers.setdefault(item, len(self._numbers) + 1)

    def items(self) -> list[Item]:
        """The items in the order of their numbers."""
        return list(self._numbers)


class Merged:
    """What processes that ran the same program did, as if one had done it all."""

    def __init__(self, first: Process, slowest_at_most: int = SLOWEST) -> None:
        self._log = first.log
        self._slowest_at_most = slowest_at_most
        self._records = Records(BY)
        self._slowest: list[dict[str, int]] = []
        self._strings: _Numbers[str] = _Numbers()
        self._sites: _Numbers[Site] = _Numbers()
        self._stacks: _Numbers[tuple[int, int]] = _Numbers()
        self._intrinsics: _Numbers[tuple[str, str]] = _Numbers()
        self._told: dict[tuple[str, str], Intrinsic] = {}
        self._shares = {MAIN: Share(0, 0, 0, 0, 0, 0), OTHERS: Share(0, 0, 0, 0, 0, 0)}
        # Recorded, dropped, passed, run-queue delay; calls that are inside no other, and line events among those.
        self._counts = {number: [0, 0, 0, 0, 0, 0] for number in (MAIN, OTHERS)}
        self._time_ns = first.log.time_ns
        self._status = 0
        self._spans: dict[Process, tuple[int, int]] = {}  # the first beginning and the last end, by the founder

    def take_in(self, analysis: Analysis, process: Process) -> int:
        """Add what `process` did; returns how many calls that are."""
        records = analysis.records_by_transaction(process, BY, histograms=True)
        by_thread = records.by_thread(number_of_statements(process))
        found = account(process, by_thread, analysis.pauses)
        numbers = _Renumbered(self, process)
        anew = Records(BY, [numbers.record(each) for each in records.found()])
        self._records.take_in(anew)
        for thread, share in found.threads.items():
            self._shares[numbers.thread(thread)] += share
        for each in process.threads:
            counts = self._counts[numbers.thread(each.number)]
            for place, number in enumerate((each.record.dropped, each.record.passed, each.record.run_delay_ns), 1):
                counts[place] += number
        for thread, sums in by_thread.items():
            counts = self._counts[numbers.thread(thread)]
            counts[0] += sums.calls
            counts[4] += sums.calls - sums.inner_calls
            counts[5] += sums.statements - sums.inner_statements
        self._time_ns = min(self._time_ns, process.log.time_ns)
        self._status = max(self._status, found.ending.status or 0)
        self._lived(analysis.experiment.founder, began_ns(process), ended_ns(process) or found.latest_ns)
        if process.consolidated:
            self._slowest += [numbers.event(each) for each in process.consolidated[0].slowest]
            self._slowest.sort(key=lambda event: -event.get("wall_ns", 0))
            del self._slowest[self._slowest_at_most :]
        return sum(sums.calls for sums in by_thread.values())

    def _lived(self, founder: Process, first_ns: int, last_ns: int) -> None:
        before = self._spans.get(founder, (first_ns, last_ns))
        self._spans[founder] = min(before[0], first_ns), max(before[1], last_ns)

    def written(self, number: int, elapsed_ns: int = 0) -> Written:
        """All of it, to be written as the process `number` of an experiment; for the first one, with how long the
        merged experiments took together."""
        there = [MAIN, OTHERS] if self._shares[OTHERS].wall_ns else [MAIN]
        threads = [self._thread(each) for each in there]
        until = [(place, each.end_ns, each.end_cpu_ns) for place, each in enumerate(threads, 1)]
        begin = dict.fromkeys(Overview._fields, 0) | {"time_ns": START_NS, "kind": 1}
        lived_ns = sum(max(last - first, 0) for first, last in self._spans.values())
        end = begin | {"time_ns": START_NS + lived_ns, "kind": 3, "status": self._status}
        end["cpu_ns"] = sum(each.end_cpu_ns for each in threads)
        kept = {name: self._log.settings[name] for name in _KEPT if name in self._log.settings}
        log = Log(
            collector=self._log.collector,
            system=self._log.system,
            user=self._log.user,
            clock=self._log.clock,
            settings={**kept, "INTERPOSE_ARCHIVE": "off"},
            call_ns=self._log.call_ns,
            inside_ns=self._log.inside_ns,
            statement_ns=self._log.statement_ns,
            executable=self._log.executable,
            cwd=self._log.cwd,
            arguments=self._log.arguments,
            pid=number,
            start_ns=START_NS,
            time_ns=self._time_ns,
            elapsed_ns=elapsed_ns,
        )
        said = Consolidated(BY, FIGURES, until=until, slowest=self._slowest)
        sites = [self._site(each) for each in self._sites.items()]  # which may need strings
        return Written(
            log,
            said,
            self._records.found(),
            [self._told[each] for each in self._intrinsics.items()],
            self._strings.items(),
            sites,
            [StackRecord(site, outer) for site, outer in self._stacks.items()],
            threads,
            [Overview(**begin), Overview(**end)],
        )

    def _thread(self, number: int) -> ThreadRecord:
        share = self._shares[number]
        recorded, dropped, passed, run_delay_ns, outermost, statements = self._counts[number]
        wall_ns = share.wall_ns - share.paused_wall_ns - share.before_wall_ns
        cpu_ns = share.cpu_ns - share.paused_cpu_ns - share.before_cpu_ns
        values = {"start_ns": START_NS, "end_ns": START_NS + wall_ns, "end_cpu_ns": cpu_ns}
        values["seen_ns"] = values["end_ns"]
        values |= {"made": recorded + dropped, "recorded": recorded, "dropped": dropped, "passed": passed}
        of_calls_ns = recording_ns(self._log, outermost, statements)
        values["own_wall_ns"] = max(share.own_wall_ns - of_calls_ns, 0)
        values["own_cpu_ns"] = max(share.own_cpu_ns - of_calls_ns, 0)
        values["run_delay_ns"] = run_delay_ns
        values |= {"tid": number, "main": int(number == MAIN)}
        return ThreadRecord(**{name: min(values.get(name, 0), MOST) for name in ThreadRecord._fields})

    def _site(self, site: Site) -> SiteRecord:
        file, function, collector = map(self.string, (site.file, site.function, site.collector))
        return SiteRecord(file, function, site.line, int(site.own), collector)

    def string(self, text: str) -> int:
        """The number of a text."""
        return self._strings.of(text) if text else 0

    def intrinsic(self, told: Intrinsic) -> int:
        """The number of an intrinsic's calls of one kind."""
        key = (told.name, told.kind)
        self._told.setdefault(key, told)
        return self._intrinsics.of(key)

    def stack(self, sites: list[Site]) -> int:
        """The number of a stack, given from the innermost site outward."""
        outer = 0
        for site in reversed(sites):
            self.string(site.file)
            self.string(site.function)
            self.string(site.collector)
            outer = self._stacks.of((self._sites.of(site), outer))
        return outer


class _Renumbered:
    """What the numbers of one process are in the merged one."""

    def __init__(self, merged: Merged, process: Process) -> None:
        self._merged = merged
        self._process = process
        self._main = {each.number for each in process.threads if each.record.main}
        self._stacks: dict[int, int] = {}

    def thread(self, number: int) -> int:
        """The number of a thread."""
        return MAIN if number in self._main else OTHERS

    def record(self, found: Found) -> Found:
        """A record with the numbers of the merged process."""
        thread, intrinsic, stack, detail, error = found.key
        numbers = (self._intrinsic(intrinsic), self._stack(stack), self._string(detail), self._string(error))
        return found._replace(key=(self.thread(thread), *numbers), name=self._name(found.name))

    def event(self, event: dict[str, int]) -> dict[str, int]:
        """One of the slowest events with these numbers."""
        anew = {name: event.get(name, 0) for name in Event._fields}
        anew["thread"], anew["intrinsic"] = self.thread(anew["thread"]), self._intrinsic(anew["intrinsic"])
        anew["stack"] = self._stack(anew["stack"])
        anew["detail"], anew["error"] = self._string(anew["detail"]), self._string(anew["error"])
        return anew

    def _intrinsic(self, number: int) -> int:
        return self._merged.intrinsic(self._process.intrinsic(number)) if number else 0

    def _string(self, number: int) -> int:
        return self._merged.string(self._process.string(number))

    def _stack(self, number: int) -> int:
        if number not in self._stacks:
            self._stacks[number] = self._merged.stack(list(self._process.frames(number)))
        return self._stacks[number]

    def _name(self, name: int) -> int:
        if is_in_progress(name):
            return self._name(name - IN_PROGRESS) + IN_PROGRESS
        kind, number = name & ~NUMBER, name & NUMBER
        anew = {BY_STACK: self._stack, BY_DETAIL: self._string, BY_INTRINSIC: self._intrinsic}
        return kind | anew[kind](number) if kind in anew else name
