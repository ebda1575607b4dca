"""Estimates for sampled transactions: the calls within all of them, from those within the few that were kept.

The existence, name and duration of each outermost transaction are known exactly, and so are calls outside of
transactions. Calls within the kept ones represent the calls within all: counts are multiplied by all transactions per
kept one (expansion estimator), times by the time of all on their threads per time of the kept ones (ratio estimator),
so times still add up to the thread time. The margins of error are those of a simple random sample without replacement
(Cochran, Sampling Techniques, 1977, 2.9 and 6.4; those of times are scaled by how much longer transactions are than the
kept ones: Royall and Cumberland, 1981), with Student's distribution, for 95 %.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from interpose.analysis.comparison.distributions import student_bound
from interpose.analysis.consolidation.records import Record, Records
from interpose.analysis.consolidation.sums import Sums
from interpose.experiments.format.records import Event
from interpose.experiments.model.experiment import Experiment
from interpose.experiments.model.process import Process

OUTSIDE, KEPT, PASSED_OVER, WITHIN, EXACT, ALWAYS = range(6)  # where a record stands
BEYOND = 0.05
ALL = "all"
SCALED = ("calls", "errors", "bytes", "rows")


@dataclass
class Margin:
    """How far an estimate may be off, 19 times of 20."""

    calls: float
    self_wall_ns: float


@dataclass
class Population:
    """The transactions of an experiment: how many there were and were kept, and what both took of their threads."""

    seen: int = 0
    kept: int = 0
    kept_wall_ns: int = 0
    kept_cpu_ns: int = 0
    passed_wall_ns: int = 0
    passed_cpu_ns: int = 0

    @property
    def is_known(self) -> bool:
        """Whether anything is known about the calls within them."""
        return self.kept > 0 and (self.kept_wall_ns > 0 or self.passed_wall_ns == 0)

    def add(self, other: Population) -> None:
        """Take the transactions of `other` in as well."""
        self.seen += other.seen
        self.kept += other.kept
        self.kept_wall_ns += other.kept_wall_ns
        self.kept_cpu_ns += other.kept_cpu_ns
        self.passed_wall_ns += other.passed_wall_ns
        self.passed_cpu_ns += other.passed_cpu_ns


@dataclass
class Estimate:
    """The basis of an estimated profile. `margins` are by kind and for `all`; there are none if fewer than two
    transactions were kept, or single calls were not. `started` are the processes started in transactions that were not
    sampled, and in any: the calls of the former outside of their own transactions are not estimated."""

    population: Population
    one_in: int
    seed: str
    is_scaled: bool
    margins: dict[str | None, Margin] = field(default_factory=dict)
    started: tuple[int, int] = (0, 0)

    @property
    def is_estimated(self) -> bool:
        """Whether figures differ from what was recorded: some transactions were not sampled, and are estimated."""
        of = self.population
        return self.is_scaled and of.is_known and of.kept < of.seen


def is_sampled(experiment: Experiment) -> bool:
    """Whether transactions of `experiment` were sampled."""
    return any(process.log.one_in for process in experiment.processes)


def experiment_of(process: Process) -> str:
    """Which experiment `process` is of: each was sampled by itself."""
    return process.place.partition("/")[0]


def standings(process: Process, records: Records) -> Iterator[tuple[Record, int]]:
    """Each record of calls, after the one around it, and its place: outside of transactions; an outermost transaction,
    kept or not; within a kept one; or recorded in any case."""
    place = records.by.index("intrinsic")
    found: dict[int, int] = {}
    for record in records.walk():
        if record.is_call:
            around = found.get(id(record.outer), OUTSIDE)
            found[id(record)] = standing = _standing(process, record.key[place], around)
            yield record, standing


def _standing(process: Process, number: int, around: int) -> int:
    intrinsic = process.intrinsic(number)
    if around in (KEPT, WITHIN, ALWAYS):
        return ALWAYS if intrinsic.always else WITHIN
    if around in (PASSED_OVER, EXACT):
        return EXACT
    if not (intrinsic.is_transaction and process.log.one_in):
        return OUTSIDE
    return PASSED_OVER if intrinsic.passed_over else KEPT


def population_of(process: Process, records: Records) -> Population:
    """The transactions of one process."""
    made = Population()
    place = records.by.index("intrinsic")
    for record, standing in standings(process, records):
        sums = record.sums
        continues = process.intrinsic(record.key[place]).continues_transaction
        if standing in (KEPT, PASSED_OVER) and not continues:
            made.seen += sums.calls
            made.kept += sums.calls if standing == KEPT else 0
        if standing in (KEPT, WITHIN):
            made.kept_wall_ns += sums.self_wall_ns
            made.kept_cpu_ns += sums.self_cpu_ns
        elif standing == PASSED_OVER:
            made.passed_wall_ns += sums.self_wall_ns
            made.passed_cpu_ns += sums.self_cpu_ns
    return made


def started_within(experiment: Experiment) -> tuple[int, int]:
    """The number of processes started in transactions that were not sampled, and in any."""
    fates = [process.log.within for process in experiment.processes if process.log.within]
    return fates.count("passed over"), len(fates)


# --- scaling


def scaled(within: Sums, population: Population, is_timed: bool = True) -> Sums:
    """The figures of calls within kept transactions, as estimated for all; `is_timed`: their times, too. Nothing has
    more CPU than wall time."""
    made = replace(within)
    for name in SCALED:
        setattr(made, name, _scaled(getattr(within, name), population.seen, population.kept))
    if is_timed:
        walls = population.kept_wall_ns + population.passed_wall_ns, population.kept_wall_ns
        cpus = population.kept_cpu_ns + population.passed_cpu_ns, population.kept_cpu_ns
        made.wall_ns, made.self_wall_ns = (_scaled(each, *walls) for each in (within.wall_ns, within.self_wall_ns))
        made.cpu_ns = min(_scaled(within.cpu_ns, *cpus), made.wall_ns)
        made.self_cpu_ns = min(_scaled(within.self_cpu_ns, *cpus), made.self_wall_ns)
    return made


def _scaled(number: int, whole: int, part: int) -> int:
    return (number * whole + part // 2) // part if part else number


def settle(parts: Sequence[Sums], population: Population) -> None:
    """Have scaled figures add up to what the transactions took, to the nanosecond."""
    left_ns = population.kept_wall_ns + population.passed_wall_ns - sum(each.self_wall_ns for each in parts)
    for each in sorted(parts, key=lambda each: -each.self_wall_ns):
        change_ns = max(left_ns, -each.self_wall_ns)
        each.self_wall_ns += change_ns
        each.self_cpu_ns = min(each.self_cpu_ns, each.self_wall_ns)
        each.wall_ns = max(each.wall_ns, each.self_wall_ns)
        left_ns -= change_ns
    left_ns = population.kept_cpu_ns + population.passed_cpu_ns - sum(each.self_cpu_ns for each in parts)
    for each in sorted(parts, key=lambda each: each.self_cpu_ns - each.self_wall_ns):
        change_ns = max(min(left_ns, each.self_wall_ns - each.self_cpu_ns), -each.self_cpu_ns)
        each.self_cpu_ns += change_ns
        each.cpu_ns = max(each.cpu_ns, each.self_cpu_ns)
        left_ns -= change_ns


# --- margins

Shares = dict[Hashable, list[int]]  # by row: calls and self wall time


class _Loose:
    """What is inside a call that has not ended: calls without a transaction so far, and transactions."""

    __slots__ = ("shares", "transactions")

    def __init__(self) -> None:
        self.shares: Shares = {}
        self.transactions: list[tuple[Hashable, Shares]] = []

    def take_over(self, other: _Loose) -> None:
        """Have what `other` has."""
        _add_shares(self.shares, other.shares)
        self.transactions += other.transactions


def _add_shares(into: Shares, given: Shares) -> None:
    for row, (calls, self_ns) in given.items():
        mine = into.setdefault(row, [0, 0])
        mine[0] += calls
        mine[1] += self_ns


class Variation:
    """How the calls within the kept transactions of an experiment differ: sums of squares by row.

    A thread's events must come in the order of their ends.
    """

    def __init__(self) -> None:
        self.transactions = 0
        # The sums, by row, of calls and their squares, of self times and theirs, and of their products with the
        # transaction's.
        self._rows: dict[Hashable, list[int]] = {}
        self._wall_ns = self._squares = 0

    def add(self, process: Process, row_of: Callable[[Event], Hashable]) -> None:
        """Add the events of `process`; those with None as their row are ignored."""
        waiting: dict[tuple[int, int], _Loose] = {}
        for event in _events(process):
            inside = waiting.pop((event.thread, event.call), None) or _Loose()
            intrinsic = process.intrinsic(event.intrinsic)
            if intrinsic.passed_over:
                continue
            row, self_ns = row_of(event), max(event.wall_ns - event.inner_wall_ns, 0)
            if intrinsic.transaction == "is":
                for own, shares in inside.transactions:
                    _add_shares(inside.shares, shares)
                    _add_shares(inside.shares, {own: [1, 0]})
                _add_shares(inside.shares, {row: [0, self_ns]})
                inside.transactions = [(row, inside.shares)]
                inside.shares = {}
            elif not intrinsic.always:
                _add_shares(inside.shares, {row: [1, self_ns]})
            if event.parent:
                waiting.setdefault((event.thread, event.parent), _Loose()).take_over(inside)
            else:
                self._end(inside)
        for inside in waiting.values():
            self._end(inside)

    def _end(self, inside: _Loose) -> None:
        for _, shares in inside.transactions:
            self._count(shares)

    def _count(self, shares: Shares) -> None:
        """Take in one transaction."""
        self.transactions += 1
        wall_ns = sum(self_ns for _, self_ns in shares.values())
        self._wall_ns += wall_ns
        self._squares += wall_ns * wall_ns
        by_kind: Shares = {}
        for row, (calls, self_ns) in shares.items():
            kind = row[1] if isinstance(row, tuple) else None
            _add_shares(by_kind, {kind: [calls, self_ns], ALL: [calls, 0]})
        for row, (calls, self_ns) in (*shares.items(), *by_kind.items()):
            of_row = self._rows.setdefault(row, [0] * 5)
            for place, number in enumerate((calls, calls * calls, self_ns, self_ns * self_ns, self_ns * wall_ns)):
                of_row[place] += number

    def margins(self, population: Population) -> Iterator[tuple[Hashable, Margin]]:
        """The margin of each row, of each kind, and of all; none if fewer than two transactions were kept."""
        kept, seen = self.transactions, population.seen
        if kept < 2 or kept != population.kept:
            return
        reach = student_bound(BEYOND, kept - 1) * seen * math.sqrt((1 - kept / seen) / kept / (kept - 1))
        whole_ns = population.kept_wall_ns + population.passed_wall_ns
        stretch = whole_ns * kept / (population.kept_wall_ns * seen) if population.kept_wall_ns else 1.0
        for row, (calls, squares, self_ns, self_squares, products) in self._rows.items():
            ratio = self_ns / self._wall_ns if self._wall_ns else 0.0
            of_calls = max(squares - calls * calls / kept, 0.0)
            of_times = max(self_squares - 2 * ratio * products + ratio * ratio * self._squares, 0.0)
            yield row, Margin(reach * math.sqrt(of_calls), reach * stretch * math.sqrt(of_times))


def _events(process: Process) -> Iterator[Event]:
    if process.events is not None:
        for block in process.events.blocks():
            yield from process.events.events(block)


def together(margins: Iterable[tuple[Hashable, Margin]]) -> dict[Hashable, Margin]:
    """The margins of several experiments, which were sampled by themselves, of what they have in common."""
    found: dict[Hashable, Margin] = {}
    for row, margin in margins:
        known = found.get(row, Margin(0.0, 0.0))
        found[row] = Margin(math.hypot(known.calls, margin.calls), math.hypot(known.self_wall_ns, margin.self_wall_ns))
    return found
