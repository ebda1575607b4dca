"""Transactions: how often each was made, how long the user thought and the program took, and what that time was.

The time of every thread is in one transaction and in no two, those with a dot before their name among them, so think
and response times add up to the thread time without pauses. Only requests that are served at the same time on one
thread overlap, and so may calls that are awaited together within one; `overlap_ns` tells by how much the split is too
long.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from interpose.analysis.calls.account import number_of_statements, recording_ns
from interpose.analysis.calls.profile import INTERPOSE, NOT_KEPT
from interpose.analysis.consolidation.consolidate import Consolidator, consolidated
from interpose.analysis.consolidation.records import Record
from interpose.analysis.consolidation.sums import Sums
from interpose.analysis.time.lifetimes import lives_of
from interpose.analysis.transactions.estimate import Estimate, Population, is_sampled, started_within
from interpose.analysis.transactions.tracking import (
    OTHER,
    PSEUDO,
    READS,
    Tracker,
    name_of,
    roles_of,
    site_of,
)
from interpose.experiments.metadata.pauses import Pauses, pauses_of
from interpose.experiments.model.experiment import Experiment
from interpose.experiments.model.process import Process, Site
from interpose.kinds import KINDS, ON_REQUEST

LOGIC = "logic"
SPLIT = tuple(kind for kind in KINDS if kind not in (LOGIC, *ON_REQUEST))  # and whatever other kinds there are
_REQUEST = re.compile(r"([A-Z]+ )?/\S*")
_ONE_OF_MANY = re.compile(r"\d+|[0-9a-fA-F]{8,}|[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")


@dataclass
class Share:
    """Wall and CPU time of one kind within transactions."""

    wall_ns: int = 0
    cpu_ns: int = 0

    def add(self, wall_ns: int, cpu_ns: int) -> None:
        """Add these times."""
        self.wall_ns += wall_ns
        self.cpu_ns += cpu_ns


@dataclass
class Transaction:
    """The transactions of one name: their figures, and their response time by kind.

    `sums.calls` is how many there were, `sums.wall_ns` their time with the user's; the kinds in `split`, with logic and
    what recording took (estimated), add up to the response time and, where calls overlapped, to `overlap_ns` more.
    Where transactions were sampled, so many were `kept`, and of the others the time is `unknown` until it is estimated.
    """

    name: str
    sums: Sums = field(default_factory=Sums)
    split: dict[str, Share] = field(default_factory=dict)
    overlap_ns: int = 0
    kept: int | None = None
    unknown: Share = field(default_factory=Share)

    @property
    def is_named(self) -> bool:
        """Whether it is one that somebody asked for, and not what lies between those, or is said to be overhead."""
        return not self.name.startswith(".")

    @property
    def think_ns(self) -> int:
        """What the user took."""
        return self.sums.think_wall_ns

    @property
    def response_ns(self) -> int:
        """What the program took."""
        return self.sums.wall_ns - self.sums.think_wall_ns

    @property
    def cpu_ns(self) -> int:
        """CPU time of the response."""
        return self.sums.cpu_ns - self.sums.think_cpu_ns

    def estimate(self) -> None:
        """Let what is known of the kept ones stand for the others; where none was, their time is a part of its own."""
        if not self.unknown.wall_ns:
            return
        shares = [share for kind, share in self.split.items() if kind != INTERPOSE]  # in the others it did nothing
        known_ns = sum(share.wall_ns for share in shares)
        known_cpu_ns = sum(share.cpu_ns for share in shares)
        if not self.kept or not known_ns:
            self.share(NOT_KEPT).add(self.unknown.wall_ns, self.unknown.cpu_ns)
            return
        left, left_cpu = self.unknown.wall_ns, self.unknown.cpu_ns
        for share in sorted(shares, key=lambda each: each.wall_ns):
            wall_ns, cpu_ns = share.wall_ns, share.cpu_ns
            more_ns = left * wall_ns // known_ns if known_ns else 0
            more_cpu_ns = min(left_cpu * cpu_ns // known_cpu_ns if known_cpu_ns else 0, wall_ns + more_ns - cpu_ns)
            share.add(more_ns, more_cpu_ns)
            left, left_cpu = left - more_ns, left_cpu - more_cpu_ns
            known_ns, known_cpu_ns = known_ns - wall_ns, known_cpu_ns - cpu_ns
        if left_cpu > 0:
            self._place_cpu(left_cpu)

    def _place_cpu(self, left_ns: int) -> None:
        """Put CPU time where there is wall time for it."""
        for share in self.split.values():
            more_ns = min(left_ns, share.wall_ns - share.cpu_ns)
            share.cpu_ns += more_ns
            left_ns -= more_ns

    def share(self, kind: str) -> Share:
        """The part of a kind, made where there was none."""
        return self.split.setdefault(kind, Share())


Found = dict[tuple[str, Site | None], Transaction]


@dataclass
class Transactions:
    """The transactions of an experiment by name, those that took longest first, those without a name last.

    `has_cpu` is false of experiments whose events do not tell when on the CPU's clock they began (before version 4):
    there the CPU time between calls is not known by transaction. `overlapped`: requests were served at the same
    time on one thread.
    """

    rows: list[Transaction]
    has_cpu: bool = True
    overlapped: bool = False
    estimate: Estimate | None = None

    @property
    def kinds(self) -> list[str]:
        """The kinds that some transaction has a part of, in the order in which they are shown."""
        there = {kind for row in self.rows for kind, share in row.split.items() if share.wall_ns or share.cpu_ns}
        known = (*SPLIT, *sorted(there - {*SPLIT, LOGIC, INTERPOSE, NOT_KEPT}), LOGIC, INTERPOSE, NOT_KEPT)
        return [kind for kind in known if kind in there]


def transactions(
    experiment: Experiment, consolidator: type[Consolidator] | None = None, is_scaled: bool = True
) -> Transactions:
    """The transactions of `experiment`. Where they were sampled, how many there were and how long they took is known of
    all; what the time of those not kept was is estimated, where it `is_scaled`."""
    pauses = pauses_of(experiment)
    found: Found = {}
    made = Transactions([])
    for process in experiment.processes:
        if process.events and "start_cpu_ns" not in process.events.layout.fields:
            made.has_cpu = False
        _Splitter(process, pauses, consolidator, found).split(made)
    _tell_apart(found)
    if is_sampled(experiment):
        made.estimate = _estimated(experiment, found, is_scaled)
    made.rows = sorted(found.values(), key=lambda row: (not row.is_named, -row.response_ns, row.name))
    return made


def _estimated(experiment: Experiment, found: Found, is_scaled: bool) -> Estimate:
    whole = Population()
    for row in found.values():
        whole.seen += row.sums.calls if row.kept is not None else 0
        whole.kept += row.kept or 0
        if is_scaled:
            row.estimate()
        elif row.unknown.wall_ns:
            row.share(NOT_KEPT).add(row.unknown.wall_ns, row.unknown.cpu_ns)
    log = next(process.log for process in experiment.processes if process.log.one_in)
    seed = log.settings.get("INTERPOSE_SEED", "")
    return Estimate(whole, log.one_in, seed, is_scaled, started=started_within(experiment))


def _tell_apart(found: Found) -> None:
    """Where several lines of a function, or functions of one name, begin transactions: the line is in the name."""
    several = {name for name, number in Counter(name for name, _ in found).items() if number > 1}
    for (name, site), row in found.items():
        if site and name in several:
            row.name = f"{name}:{site.line}"
    for name, number in Counter(row.name for row in found.values()).items():
        for (_, site), row in found.items() if number > 1 else ():
            if site and row.name == name:
                row.name = f"{name} ({site.file})"


def plain_name(name: str) -> str:
    """The name of a request without what differs from one to the next: `GET /orders/17` is `GET /orders/*`."""
    if not _REQUEST.fullmatch(name):
        return name
    return "/".join("*" if _ONE_OF_MANY.fullmatch(part) else part for part in name.split("/"))


class _Splitter:
    """Divides the transactions of one process into kinds, and adds them to those of the others."""

    def __init__(
        self,
        process: Process,
        pauses: Pauses,
        consolidator: type[Consolidator] | None,
        found: Found,
    ) -> None:
        self._process = process
        self._found = found
        self._roles = roles_of(process)
        lives = lives_of(process)
        tracker = Tracker(lives, pauses)
        self._records = consolidated(
            process, ("thread", "intrinsic"), consolidator, histograms=True, tracker=tracker
        )
        self._statement = number_of_statements(process)
        self._own_left = {each.number: each.record.own_wall_ns for each in process.threads}
        self._own_cpu_left = {each.number: each.record.own_cpu_ns for each in process.threads}

    def split(self, made: Transactions) -> None:
        """Add all transactions of the process."""
        implicit = [record for record in self._records.roots if not record.is_call]
        implicit.sort(key=lambda record: record.sums.first_ns, reverse=True)
        self._first = {record.key[0]: record for record in implicit}
        for record in self._records.roots:
            if not record.is_call:
                self._add_implicit(record)
            elif record.name:
                self._add(self._row(record.name), record.sums, record)
            else:
                self._add_left_over(record)
            served = _spans(record)
            made.overlapped = made.overlapped or any(_of_steps(each)[0] < each.sums.wall_ns * 0.99 for each in served)

    def _row(self, name: int) -> Transaction:
        text = plain_name(name_of(self._process, name))
        return self._found.setdefault((text, site_of(self._process, name)), Transaction(text))

    def _add_implicit(self, record: Record) -> None:
        """Add a transaction that is no call. Those inside of one without a name are not part of it."""
        if name_of(self._process, record.name) not in PSEUDO:
            self._add(self._row(record.name), record.sums, record)
            return
        left = replace(record.sums, walls=None, cpus=None)
        for each in _spans(record):
            wall_ns, cpu_ns = _of_steps(each)
            left.wall_ns = max(left.wall_ns - wall_ns, 0)
            left.cpu_ns = max(left.cpu_ns - cpu_ns, 0)
            self._add(self._row(each.name), each.sums, each)
        self._add(self._row(record.name), left, record, without_spans=True)

    def _add_left_over(self, record: Record) -> None:
        """Add calls of threads of which there are more than are followed."""
        for each in _spans(record):
            self._add(self._row(each.name), each.sums, each)
        row = self._row(OTHER)
        sums = Sums(calls=record.sums.calls)
        for kind, wall_ns, cpu_ns in self._parts(record, without_spans=True):
            row.share(kind).add(wall_ns, cpu_ns)
            sums.wall_ns += wall_ns
            sums.cpu_ns += cpu_ns
        row.sums.add(sums)

    def _add(self, row: Transaction, sums: Sums, record: Record, without_spans: bool = False) -> None:
        """Add transactions with the figures `sums`, and what was called within them."""
        split: dict[str, Share] = {}
        for kind, wall_ns, cpu_ns in self._parts(record, without_spans):
            split.setdefault(kind, Share()).add(wall_ns, cpu_ns)
        within = list(self._within(record, without_spans, with_reads=True))
        calls = sum(each.sums.calls for each in within)
        statements = sum(each.sums.calls for each in within if self._statement and each.key[1] == self._statement)
        split.pop(LOGIC, None)
        if self._process.log.one_in and record.is_call and not without_spans:
            is_kept = not self._process.intrinsic(record.key[1]).passed_over
            row.kept = (row.kept or 0) + (sums.calls if is_kept else 0)
            if not is_kept:
                self._add_passed_over(row, sums, split)
                return
        left_ns = sums.wall_ns - sums.think_wall_ns - sum(share.wall_ns for share in split.values())
        left_cpu_ns = sums.cpu_ns - sums.think_cpu_ns - sum(share.cpu_ns for share in split.values())
        own_ns, own_cpu_ns = self._own(record, recording_ns(self._process.log, calls, statements))
        own_ns = min(own_ns, max(left_ns, 0))
        own_cpu_ns = min(own_cpu_ns, own_ns, max(left_cpu_ns, 0))
        split[INTERPOSE] = Share(own_ns, own_cpu_ns)
        split[LOGIC] = Share(max(left_ns - own_ns, 0), max(min(left_cpu_ns - own_cpu_ns, left_ns - own_ns), 0))
        row.overlap_ns += max(-left_ns, 0)
        row.sums.add(sums)
        for kind, share in split.items():
            row.share(kind).add(share.wall_ns, share.cpu_ns)

    def _add_passed_over(self, row: Transaction, sums: Sums, split: dict[str, Share]) -> None:
        """Add transactions of which nothing but starts of processes was recorded inside."""
        wall_ns = sum(share.wall_ns for share in split.values())
        cpu_ns = sum(share.cpu_ns for share in split.values())
        left_ns = max(sums.wall_ns - sums.think_wall_ns - wall_ns, 0)
        row.unknown.add(left_ns, min(max(sums.cpu_ns - sums.think_cpu_ns - cpu_ns, 0), left_ns))
        row.overlap_ns += max(wall_ns - (sums.wall_ns - sums.think_wall_ns), 0)
        row.sums.add(sums)
        for kind, share in split.items():
            row.share(kind).add(share.wall_ns, share.cpu_ns)

    def _own(self, record: Record, of_calls_ns: int) -> tuple[int, int]:
        """What recording took within transactions: of the calls, and what was measured of a thread in its first."""
        own_ns = own_cpu_ns = of_calls_ns
        if self._first.get(record.key[0]) is record:
            own_ns += self._own_left.pop(record.key[0], 0)
            own_cpu_ns += self._own_cpu_left.pop(record.key[0], 0)
        return own_ns, own_cpu_ns

    def _parts(self, record: Record, without_spans: bool) -> Iterator[tuple[str, int, int]]:
        """Kind, wall and CPU time of what was called within a transaction, what calls had inside left out.

        While an awaited call is suspended its request waits for it, but its thread does something else.
        """
        for each in self._within(record, without_spans):
            kind = self._process.intrinsic(each.key[1]).kind
            suspended_ns = each.suspended_ns if record.is_call else 0
            yield kind, each.sums.self_wall_ns + suspended_ns, each.sums.self_cpu_ns

    def _within(self, record: Record, without_spans: bool, with_reads: bool = False) -> Iterator[Record]:
        """The calls within a transaction; reads of the terminal, and what they have inside, only if so said."""
        waiting = [record] if record.is_call and not (without_spans and record.name) else list(record.inner)
        while waiting:
            each = waiting.pop()
            if (without_spans and each.name) or (not with_reads and self._roles.get(each.key[1], 0) & READS):
                continue
            yield each
            waiting.extend(each.inner)


def _of_steps(record: Record) -> tuple[int, int]:
    """Wall and CPU time that calls and those inside of them took of their thread: not while they were suspended."""
    wall_ns = cpu_ns = 0
    waiting = [record]
    while waiting:
        each = waiting.pop()
        wall_ns += each.sums.self_wall_ns
        cpu_ns += each.sums.self_cpu_ns
        waiting.extend(each.inner)
    return wall_ns, cpu_ns


def _spans(record: Record) -> Iterator[Record]:
    """The outermost calls inside of `record`, itself among them, that are transactions."""
    waiting = [record]
    while waiting:
        each = waiting.pop()
        if each.is_call and each.name:
            yield each
        else:
            waiting.extend(each.inner)

