"""Transactions: how often each was made, how long the user thought and the program took, and what that time was.

Each moment of a thread belongs to exactly one transaction, including those with a dot before their name: think times
and `thread_ns` add up to the thread time without pauses. A response time can be longer. While a transaction awaits
something it is suspended, and its thread runs others; and what it awaits at the same time overlaps. What other threads
do for it is part of its split, of its CPU time and of `thread_ns`, but not of its response time. What it does in other
tasks of its thread is part of these, and replaces the waiting for it. `overlap_ns` is how much longer the split of a
row is than its threads' time for it, whatever the reason.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from interpose.analysis.analysis import Analysis
from interpose.analysis.calls.account import number_of_statements, recording_ns
from interpose.analysis.calls.rows import BEFORE, NOT_KEPT, OVERHEAD
from interpose.analysis.consolidation.records import Record, Records
from interpose.analysis.consolidation.sums import Sums
from interpose.analysis.recording.ring import Before, before_the_ring
from interpose.analysis.time.lifetimes import lives_of
from interpose.analysis.transactions.estimate import Estimate, Population, is_sampled, started_within
from interpose.analysis.transactions.in_progress import calls_at_the_end
from interpose.analysis.transactions.other_tasks import (
    InOtherTasks,
    in_other_tasks,
    is_called_by,
    packages_of,
    waits_for,
)
from interpose.analysis.transactions.tracking import (
    EXIT,
    OTHER,
    PSEUDO,
    READS,
    is_in_progress,
    name_of,
    roles_of,
    site_of,
)
from interpose.errors import UsageError
from interpose.experiments.metadata.log import LOWERED
from interpose.experiments.model.process import Process
from interpose.experiments.model.stacks import Site
from interpose.kinds import KINDS, OF_KERNEL, ON_REQUEST

BY = ("thread", "intrinsic")
LOGIC = "logic"
SUSPENDED = "suspended"  # of a coroutine's transaction: it awaited what no recorded call inside it awaited
NOT_ENDED = ".OPEN"  # and a name: of those in progress when their process ended, or now
OVERLAP_AT_LEAST = 0.01  # less is of calls inside that were lost
SPLIT = tuple(kind for kind in KINDS if kind not in (LOGIC, OF_KERNEL, *ON_REQUEST))  # and any other kinds
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

    `sums.calls` is their number, `sums.wall_ns` their time including the user's. The kinds in `split`, with logic, the
    time suspended and the estimated cost of recording, add up to the response time, or to more if calls overlapped or
    other threads worked for them, and always to `thread_ns` (their threads' time for them without think time) plus
    `overlap_ns`. If transactions were sampled, `kept` is how many were recorded whole, and `unknown` the time of the
    others until it is estimated.
    """

    name: str
    sums: Sums = field(default_factory=Sums)
    split: dict[str, Share] = field(default_factory=dict)
    thread_ns: int = 0
    overlap_ns: int = 0
    kept: int | None = None
    unknown: Share = field(default_factory=Share)

    @property
    def is_named(self) -> bool:
        """Whether it was marked or found, and is neither the time between transactions nor declared overhead."""
        return not self.name.startswith(".") and self.name != BEFORE

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
        """Let the kept transactions represent the others; if none was kept, the time of the others is a part of its
        own."""
        if not self.unknown.wall_ns:
            return
        shares = [share for kind, share in self.split.items() if kind != OVERHEAD]  # in the others it did nothing
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
        _place_cpu(self.split, left_cpu)

    def share(self, kind: str) -> Share:
        """The part of a kind, made where there was none."""
        return self.split.setdefault(kind, Share())

    def add(self, other: Transaction) -> None:
        """Add the transactions of `other`, of the same name, before anything is estimated."""
        self.sums.add(other.sums)
        for kind, share in other.split.items():
            self.share(kind).add(share.wall_ns, share.cpu_ns)
        self.thread_ns += other.thread_ns
        self.overlap_ns += other.overlap_ns
        if other.kept is not None:
            self.kept = (self.kept or 0) + other.kept
        self.unknown.add(other.unknown.wall_ns, other.unknown.cpu_ns)


Found = dict[tuple[str, Site | None], Transaction]


class Throttled(NamedTuple):
    """An intrinsic that the budget throttled, whether its calls are transactions, and how long after the start its
    calls were not even counted any more; None if all were."""

    name: str
    is_transaction: bool
    off_after_ns: int | None = None


@dataclass
class Transactions:
    """The transactions of an experiment by name, longest first, those without a name last.

    `has_cpu` is false if events lack the CPU time at their beginning (before version 4): the CPU time between calls is
    then unknown by transaction. `thread_ns` is the time of all threads without think time, to which shares refer.
    `by_key` has the rows by the result of `key_of`. `overwritten` is the number of calls that rings no longer have.
    `throttled` and `unmarked` are as in `TransactionsPart`.
    """

    rows: list[Transaction]
    has_cpu: bool = True
    thread_ns: int = 0
    estimate: Estimate | None = None
    by_key: Found = field(default_factory=dict)
    overwritten: int = 0
    throttled: Counter[Throttled] = field(default_factory=Counter)
    unmarked: int = 0

    @property
    def overlapped(self) -> bool:
        """Whether response times are longer than the time that threads gave to their transactions."""
        return any(row.overlap_ns > OVERLAP_AT_LEAST * row.response_ns for row in self.rows)

    @property
    def kinds(self) -> list[str]:
        """The kinds that some transaction has a part of, in the order in which they are shown."""
        there = {kind for row in self.rows for kind, share in row.split.items() if share.wall_ns or share.cpu_ns}
        last = (LOGIC, SUSPENDED, OVERHEAD, NOT_KEPT, BEFORE)
        known = (*SPLIT, *sorted(there - {*SPLIT, *last}), *last)
        return [kind for kind in known if kind in there]


@dataclass
class TransactionsPart:
    """The transactions of one experiment or of several, before they are named apart, estimated and sorted.

    `sampled` has, where they were sampled, N if one in N was kept, and the seed; `started` is as in `Estimate`.
    `overwritten` is the number of calls that rings no longer have. `throttled` has the intrinsics that the budget
    throttled, and how many of their calls were only counted. `unmarked` is the number of functions with @transaction
    that are not recorded as transactions.
    """

    found: Found = field(default_factory=dict)
    has_cpu: bool = True
    sampled: tuple[int, str] | None = None
    started: tuple[int, int] = (0, 0)
    overwritten: int = 0
    throttled: Counter[Throttled] = field(default_factory=Counter)
    unmarked: int = 0


def transactions(analysis: Analysis, is_scaled: bool = True) -> Transactions:
    """The transactions of an analysis. If they were sampled, their number and duration are known for all; the time of
    those not kept is estimated with `is_scaled`."""
    return finished(reduced(analysis), is_scaled)


def reduced(analysis: Analysis) -> TransactionsPart:
    """The transactions that an analysis has, by name."""
    experiment = analysis.experiment
    made = TransactionsPart()
    for process in experiment.processes:
        if process.events and "start_cpu_ns" not in process.events.layout.fields:
            made.has_cpu = False
        _Splitter(analysis, process, made.found).split()
        made.overwritten += process.overwritten
        made.throttled.update(_throttled(process))
        made.unmarked += sum(process.log.unmarked.values())
    if is_sampled(experiment):
        log = next(process.log for process in experiment.processes if process.log.one_in)
        made.sampled = log.one_in, log.settings.get("INTERPOSE_SEED", "")
        made.started = started_within(experiment)
    return made


def _throttled(process: Process) -> dict[Throttled, int]:
    steps = [(each.intrinsic, each) for each in process.log.events if each.kind == LOWERED and each.intrinsic]
    off_ns = {number: max(each.time_ns - process.log.start_ns, 0) for number, each in steps if each.level == "off"}
    found: Counter[Throttled] = Counter()
    for number in dict(steps):
        intrinsic = process.intrinsic(number)
        alike = Throttled(intrinsic.name, bool(intrinsic.transaction), off_ns.get(number))
        found[alike] += process.counts.get(number, 0)
    return found


def merged(parts: Iterable[TransactionsPart]) -> TransactionsPart:
    """One part of all; those given do not change."""
    made = TransactionsPart()
    for part in parts:
        for key, row in part.found.items():
            made.found.setdefault(key, Transaction(key[0])).add(row)
        made.has_cpu &= part.has_cpu
        made.sampled = min(filter(None, (made.sampled, part.sampled)), default=None)
        made.started = made.started[0] + part.started[0], made.started[1] + part.started[1]
        made.overwritten += part.overwritten
        made.throttled.update(part.throttled)
        made.unmarked += part.unmarked
    return made


def finished(part: TransactionsPart, is_scaled: bool = True) -> Transactions:
    """The transactions of `part`, sorted, with estimates where they were sampled."""
    found = part.found
    made = Transactions([], part.has_cpu, by_key=found, overwritten=part.overwritten, throttled=part.throttled)
    made.unmarked = part.unmarked
    _tell_apart(found)
    if part.sampled:
        made.estimate = _estimated(part, is_scaled)
    made.thread_ns = sum(row.thread_ns for row in found.values())
    made.rows = sorted(found.values(), key=lambda row: (not row.is_named, -row.response_ns, row.name))
    return made


def _estimated(part: TransactionsPart, is_scaled: bool) -> Estimate:
    assert part.sampled is not None
    whole = Population()
    for row in part.found.values():
        whole.seen += row.sums.calls if row.kept is not None else 0
        whole.kept += row.kept or 0
        if is_scaled:
            row.estimate()
        elif row.unknown.wall_ns:
            row.share(NOT_KEPT).add(row.unknown.wall_ns, row.unknown.cpu_ns)
    return Estimate(whole, *part.sampled, is_scaled, started=part.started)


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


def key_of(process: Process, name: int) -> tuple[str, Site | None]:
    """What the transactions of `process` with the name `name` have in common with those of other processes."""
    plain = plain_name(name_of(process, name))
    return (f"{NOT_ENDED} {plain}" if is_in_progress(name) else plain), site_of(process, name)


def plain_name(name: str) -> str:
    """The name of a request without what differs from one to the next: `GET /orders/17` is `GET /orders/*`."""
    if not _REQUEST.fullmatch(name):
        return name
    return "/".join("*" if _ONE_OF_MANY.fullmatch(part) else part for part in name.split("/"))


class _Splitter:
    """Divides the transactions of one process into kinds, and adds them to those of the others."""

    def __init__(self, analysis: Analysis, process: Process, found: Found) -> None:
        self._process = process
        self._found = found
        self._roles = roles_of(process)
        self._records = analysis.records_by_transaction(process, BY, histograms=True)
        if any(record.name and any(in_other_tasks(record)) for record in self._records.calls()):
            self._records = _with_stacks(analysis, process, self._records)
        self._statement = number_of_statements(process)
        kept = {each.number: each.record for each in process.threads}
        before = defaultdict(Before, before_the_ring(process))
        self._own_left = {
            number: max(each.own_wall_ns - each.inside_wall_ns - before[number].own_wall_ns, 0)
            for number, each in kept.items()
        }
        self._own_cpu_left = {
            number: max(each.own_cpu_ns - each.inside_cpu_ns - before[number].own_cpu_ns, 0)
            for number, each in kept.items()
        }
        self._recorded = kept
        # Lost calls inside a transaction look as if it had been suspended.
        self._has_lost = bool(process.overwritten or process.lost_calls or any(each.dropped for each in kept.values()))
        self._given_ns: Counter[int] = Counter()  # by thread, to transactions and what is between them
        self._apart: dict[int, tuple[int, int]] = {}  # cost of recording within calls, by the identity of their record
        self._is_before = {number for number, each in before.items() if each != Before()}
        self._at_the_end = calls_at_the_end(process)
        self._within_one = {each.key[0] for each in self._records.calls() if is_in_progress(each.name)}

    def split(self) -> None:
        """Add all transactions of the process."""
        implicit = [record for record in self._records.roots if not record.is_call]
        implicit.sort(key=lambda record: record.sums.first_ns, reverse=True)
        self._first = {record.key[0]: record for record in implicit}
        for record in self._records.calls() if not self._has_lost else ():
            self._take_apart(record)
        for record in self._records.roots:
            if not record.is_call:
                self._add_implicit(record)
            elif record.name:
                self._add(self._row(record.name), record.sums, record, record.sums.wall_ns)
            else:
                self._add_left_over(record)
        self._add_before()

    def _add_before(self) -> None:
        """Add the time of which a ring no longer has the calls, nor the transactions: all that the others leave."""
        lives = lives_of(self._process) if self._is_before else {}
        for number in self._is_before:
            life, record = lives[number], self._recorded[number]
            wall_ns = max(life.end_ns - record.start_ns - self._given_ns[number], 0)
            cpu_ns = min(life.start_cpu_ns - record.start_cpu_ns, wall_ns)
            row = self._found.setdefault((BEFORE, None), Transaction(BEFORE))
            row.sums.wall_ns += wall_ns
            row.sums.cpu_ns += cpu_ns
            row.thread_ns += wall_ns
            row.share(BEFORE).add(wall_ns, cpu_ns)

    def _row(self, name: int) -> Transaction:
        key = key_of(self._process, name)
        return self._found.setdefault(key, Transaction(key[0]))

    def _add_implicit(self, record: Record) -> None:
        """Add a transaction that is no call. Those inside of one without a name are not part of it."""
        if name_of(self._process, record.name) not in PSEUDO:
            self._add(self._row(record.name), record.sums, record, record.sums.wall_ns)
            return
        left = replace(record.sums, walls=None, cpus=None)
        for each in _spans(record):
            wall_ns, cpu_ns = _of_steps(each)
            wall_ns = min(wall_ns, left.wall_ns)
            left.wall_ns -= wall_ns
            left.cpu_ns = max(left.cpu_ns - cpu_ns, 0)
            self._add(self._row(each.name), each.sums, each, wall_ns)
        self._add(self._row(record.name), left, record, left.wall_ns, without_spans=True)

    def _add_left_over(self, record: Record) -> None:
        """Add calls of threads of which there are more than are followed."""
        for each in _spans(record):
            self._add(self._row(each.name), each.sums, each, _of_steps(each)[0])
        row = self._row(OTHER)
        sums = Sums(calls=record.sums.calls)
        for kind, wall_ns, cpu_ns in self._parts(record, without_spans=True):
            row.share(kind).add(wall_ns, cpu_ns)
            sums.wall_ns += wall_ns
            sums.cpu_ns += cpu_ns
        row.thread_ns += sums.wall_ns
        row.sums.add(sums)

    def _add(
        self, row: Transaction, sums: Sums, record: Record, of_thread_ns: int, without_spans: bool = False
    ) -> None:
        """Add transactions with the figures `sums`, to which their thread gave so much time, and what they called."""
        self._given_ns[record.key[0]] += of_thread_ns
        split: dict[str, Share] = {}
        for kind, wall_ns, cpu_ns in self._parts(record, without_spans):
            split.setdefault(kind, Share()).add(wall_ns, cpu_ns)
        if not without_spans:
            sums = self._with_other_tasks(record, sums, split)
        self._add_calls_at_the_end(record, sums, split)
        within = list(self._within(record, without_spans, with_reads=True))
        calls = sum(each.sums.calls for each in within)
        statements = sum(each.sums.calls for each in within if self._statement and each.key[1] == self._statement)
        ran_ns = self._ran_ns(within) if _may_wait(record) and not self._has_lost else None
        split.pop(LOGIC, None)
        _add_thread_time(row, sums, of_thread_ns, sum(share.wall_ns for share in split.values()))
        if self._process.log.one_in and record.is_call and not without_spans:
            is_kept = not self._process.intrinsic(record.key[1]).passed_over
            row.kept = (row.kept or 0) + (sums.calls if is_kept and not self._continues(record) else 0)
            if not is_kept:
                self._add_passed_over(row, record, sums, split)
                return
        left_ns = sums.wall_ns - sums.think_wall_ns - sum(share.wall_ns for share in split.values())
        left_cpu_ns = sums.cpu_ns - sums.think_cpu_ns - sum(share.cpu_ns for share in split.values())
        own_ns, own_cpu_ns = self._own(record, calls, recording_ns(self._process.log, calls, statements))
        apart_ns, apart_cpu_ns = self._apart_within(within)
        own_ns, own_cpu_ns = own_ns + apart_ns, own_cpu_ns + apart_cpu_ns
        own_ns = min(own_ns, max(left_ns, 0))
        own_cpu_ns = min(own_cpu_ns, own_ns, max(left_cpu_ns, 0))
        split[OVERHEAD] = Share(own_ns, own_cpu_ns)
        left_ns = max(left_ns - own_ns, 0)
        split[LOGIC] = Share(left_ns if ran_ns is None else min(left_ns, max(ran_ns + apart_ns - own_ns, 0)))
        _place_cpu({LOGIC: split[LOGIC], **dict(sorted(split.items()))}, left_cpu_ns - own_cpu_ns)
        if suspended_ns := left_ns - split[LOGIC].wall_ns:
            split[SUSPENDED] = Share(suspended_ns)
        self._add_sums(row, record, sums)
        for kind, share in split.items():
            row.share(kind).add(share.wall_ns, share.cpu_ns)

    def _add_calls_at_the_end(self, record: Record, sums: Sums, split: dict[str, Share]) -> None:
        """Add the thread's calls in progress, if it was in the transaction of `record` at the end."""
        is_after = record.name in (EXIT, OTHER) and record.key[0] not in self._within_one
        if not is_after and not is_in_progress(record.name):
            return
        left_ns = sums.wall_ns - sums.think_wall_ns - sum(share.wall_ns for share in split.values())
        for each in self._at_the_end.pop(record.key[0], ()):
            wall_ns = max(min(each.self_wall_ns, left_ns), 0)
            kind = self._process.intrinsic(each.call.intrinsic).kind
            split.setdefault(kind, Share()).add(wall_ns, min(each.self_cpu_ns, wall_ns))
            left_ns -= wall_ns

    def _with_other_tasks(self, record: Record, sums: Sums, split: dict[str, Share]) -> Sums:
        """The figures with the CPU time of other tasks; what they did is in `split` by itself, and no longer also as
        the waiting for it."""
        for other in in_other_tasks(record):
            sums = replace(sums, cpu_ns=sums.cpu_ns + other.cpu_ns)
            for kind, wall_ns in waits_for(other, self._kind_of, self._is_of_framework_of(other)).items():
                share = split.get(kind, Share())
                share.wall_ns -= min(wall_ns, share.wall_ns)
        return sums

    def _is_of_framework_of(self, other: InOtherTasks) -> Callable[[Record], bool]:
        """Whether the framework that began these tasks made calls; where no stack is known, what waits for others."""
        packages = packages_of(self._process.intrinsic(each.key[1]).name for each in other.around.inner if each.name)

        def is_of_framework(record: Record) -> bool:
            stack = record.key[2] if len(record.key) > len(BY) else 0
            return is_called_by(packages, self._process.frames(stack)) if stack else self._kind_of(record) == "sync"

        return is_of_framework

    def _ran_ns(self, within: Iterable[Record]) -> int:
        """How long the transactions, and what is logic inside of them, ran themselves: not suspended, nor in calls."""
        return sum(each.sums.self_wall_ns for each in within if self._kind_of(each) == LOGIC)

    def _kind_of(self, record: Record) -> str:
        return self._process.intrinsic(record.key[1]).kind

    def _continues(self, record: Record) -> bool:
        """Whether what `record` took is a part of transactions that are calls of another thread."""
        return record.is_call and self._process.intrinsic(record.key[1]).continues_transaction

    def _add_sums(self, row: Transaction, record: Record, sums: Sums) -> None:
        """Add what transactions took; of what continues those of another thread, the CPU time."""
        if self._continues(record):
            row.sums.cpu_ns += sums.cpu_ns
        else:
            row.sums.add(sums)

    def _add_passed_over(self, row: Transaction, record: Record, sums: Sums, split: dict[str, Share]) -> None:
        """Add transactions of which nothing but starts of processes was recorded inside."""
        wall_ns = sum(share.wall_ns for share in split.values())
        cpu_ns = sum(share.cpu_ns for share in split.values())
        left_ns = max(sums.wall_ns - sums.think_wall_ns - wall_ns, 0)
        row.unknown.add(left_ns, min(max(sums.cpu_ns - sums.think_cpu_ns - cpu_ns, 0), left_ns))
        self._add_sums(row, record, sums)
        for kind, share in split.items():
            row.share(kind).add(share.wall_ns, share.cpu_ns)

    def _own(self, record: Record, calls: int, of_calls_ns: int) -> tuple[int, int]:
        """The cost of recording within transactions, without work by itself: that of their calls, with a share of the
        cost measured within calls. The first transaction of a thread also has the cost measured outside of calls.
        """
        own_ns = own_cpu_ns = of_calls_ns
        thread = self._recorded.get(record.key[0])
        if thread and thread.recorded:
            own_ns += thread.inside_wall_ns * calls // thread.recorded
            own_cpu_ns += thread.inside_cpu_ns * calls // thread.recorded
        if self._first.get(record.key[0]) is record:
            own_ns += self._own_left.pop(record.key[0], 0)
            own_cpu_ns += self._own_cpu_left.pop(record.key[0], 0)
        return own_ns, own_cpu_ns

    def _take_apart(self, record: Record) -> None:
        """Note the cost of recording that was measured within these calls by itself; the rest is the first one's."""
        wall_ns, cpu_ns = record.apart_ns
        left_ns = self._own_left.get(record.key[0], 0)
        if cpu_ns and wall_ns <= left_ns:
            self._apart[id(record)] = wall_ns, cpu_ns
            self._own_left[record.key[0]] = left_ns - wall_ns
            self._own_cpu_left[record.key[0]] = max(self._own_cpu_left[record.key[0]] - cpu_ns, 0)

    def _apart_within(self, within: Iterable[Record]) -> tuple[int, int]:
        found = [self._apart.get(id(each), (0, 0)) for each in within]
        return sum(wall_ns for wall_ns, _ in found), sum(cpu_ns for _, cpu_ns in found)

    def _parts(self, record: Record, without_spans: bool) -> Iterator[tuple[str, int, int]]:
        """Kind, wall and CPU time of the calls within a transaction, without the calls inside them.

        While an awaited call is suspended its request waits for it, but its thread does something else.
        """
        for each in self._within(record, without_spans):
            kind = self._kind_of(each)
            suspended_ns = each.suspended_ns if _may_wait(record) and id(each) not in self._apart else 0
            yield kind, each.sums.self_wall_ns + suspended_ns, each.sums.self_cpu_ns

    def _within(self, record: Record, without_spans: bool, with_reads: bool = False) -> Iterator[Record]:
        """The calls within a transaction; reads of the terminal, and what they have inside, only if so said."""
        waiting = [record] if record.is_call and not (without_spans and record.name) else list(record.inner)
        while waiting:
            each = waiting.pop()
            if (without_spans and each.name) or (not with_reads and self._roles.get(each.key[1], 0) & READS):
                continue
            if each.is_call:
                yield each
            waiting.extend(each.inner)


def _with_stacks(analysis: Analysis, process: Process, without: Records) -> Records:
    """The records by stack, too; those `without`, if stacks were not kept."""
    try:
        return analysis.records_by_transaction(process, (*BY, "stack"), histograms=True)
    except UsageError:
        return without


def _may_wait(record: Record) -> bool:
    """Whether these transactions can be suspended while their thread runs others: calls, and those of tasks."""
    return record.is_call or record.outer is not None


def _place_cpu(split: dict[str, Share], left_ns: int) -> None:
    """Put CPU time where there is wall time for it, in this order; the excess goes to the first."""
    for share in split.values():
        more_ns = max(min(left_ns, share.wall_ns - share.cpu_ns), 0)
        share.cpu_ns += more_ns
        left_ns -= more_ns
    next(iter(split.values())).cpu_ns += max(left_ns, 0)


def _add_thread_time(row: Transaction, sums: Sums, of_thread_ns: int, in_calls_ns: int) -> None:
    """Add what the thread gave, and by how much the split, which is of the response or of more, is longer."""
    thread_ns = of_thread_ns - sums.think_wall_ns
    row.thread_ns += thread_ns
    row.overlap_ns += max(sums.wall_ns - sums.think_wall_ns, in_calls_ns) - thread_ns


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
    """The outermost records inside of `record` that are transactions: calls, or what tasks committed."""
    waiting = list(record.inner)
    while waiting:
        each = waiting.pop()
        if each.name:
            yield each
        else:
            waiting.extend(each.inner)

