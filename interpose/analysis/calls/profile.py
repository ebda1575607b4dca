"""From sums to rows: what each kind, intrinsic, site, function, statement, file, program, thread or process took.

The self times of all rows, of the row `code` and of the row `overhead` (and, where there are such, of the rows
`in progress`, `before the ring` and `paused`) add up to the thread time, to the nanosecond
(`interpose.analysis.calls.account`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from operator import itemgetter

from interpose.analysis.analysis import Analysis
from interpose.analysis.calls.account import NOTHING, Share
from interpose.analysis.calls.groupings import COUNTED, GROUPINGS, WHOLES, Grouping, row_of_kind, whole_labels
from interpose.analysis.calls.parts import Labels, Part, not_kept_row
from interpose.analysis.calls.rows import (
    BEFORE,
    CODE,
    IN_PROGRESS,
    NOT_KEPT,
    OVERHEAD,
    PAUSED,
    START_UP,
    SYNC,
    Row,
    closing_row,
    largest_first,
    ranked,
)
from interpose.analysis.consolidation.records import Key, Record, Records, grouped
from interpose.analysis.consolidation.sums import Sums
from interpose.analysis.transactions.estimate import (
    ALWAYS,
    EXACT,
    KEPT,
    OUTSIDE,
    PASSED_OVER,
    SCALED,
    Estimate,
    Margin,
    Population,
    Variation,
    experiment_of,
    is_sampled,
    population_of,
    scaled,
    settle,
    standings,
    started_within,
    together,
)
from interpose.experiments.format.records import Event
from interpose.experiments.model.experiment import Experiment
from interpose.experiments.model.process import Process
from interpose.kinds import KINDS


@dataclass
class Profile:
    """The rows of a grouping, largest self wall time first, then `code`, `overhead` and similar rows.

    Rows of calls that waited for work come last. `part` is what they were made from, `analysis` what that was read
    from, unless it was merged from partial results. A part of the calls, that of a label, is not a part of any total:
    it has no closing rows, and its total is what the calls took. `estimate` exists if transactions were sampled: with
    `is_scaled`, counts and times are then estimated for all of them.
    """

    rows: list[Row]
    part: Part
    analysis: Analysis | None = None

    @property
    def total(self) -> Share:
        """All threads of all processes; of a part, its calls."""
        return self.part.total

    @property
    def estimate(self) -> Estimate | None:
        """The basis of what is estimated."""
        return self.part.estimate

    @property
    def counters(self) -> tuple[str, ...]:
        """The counters that were read, in the order requested."""
        return self.part.counters


def profile(analysis: Analysis, by: str, is_scaled: bool = True) -> Profile:
    """The profile of an analysis, grouped by one of `GROUPINGS`.

    If transactions were sampled, calls within those kept represent the calls within all of them, unless `is_scaled` is
    false. If only some calls are selected, they represent themselves.
    """
    return finished(reduced(analysis, by, is_scaled), by, analysis)


def reduced(analysis: Analysis, by: str, is_scaled: bool = True) -> Part:
    """The part of a profile that an analysis has."""
    experiment, grouping = analysis.experiment, GROUPINGS[by]
    sampled = is_sampled(experiment)
    rows = _Sampled(grouping, by in WHOLES) if sampled and not analysis.is_part else _Rows()
    for process in experiment.processes:
        rows.add_records(process, grouping, analysis.records_of_threads(process, grouping.needs))
    if analysis.is_part:
        estimate = _estimate_of(experiment, {}, is_scaled=False) if sampled else None
        return Part(rows.made, is_part=True, estimate=estimate)
    if by in WHOLES:
        rows.add_passed(by, experiment.processes)
    if by in COUNTED:
        rows.add_counted(grouping, experiment.processes)
    estimate = rows.finish(experiment, is_scaled) if isinstance(rows, _Sampled) else None
    passed = sum(each.passed for each in analysis.accounts)
    return Part(rows.made, _shares_by(by, analysis), passed, _counted(experiment), estimate=estimate)


def finished(part: Part, by: str, analysis: Analysis | None = None) -> Profile:
    """The profile with the rows of `part`, sorted and closed."""
    rows = sorted(part.rows, key=largest_first)
    if part.is_part:
        return Profile(ranked(rows), part, analysis)
    if by == "kind":
        add_passed(rows, part.passed)
    for row in rows:
        if row.kind == NOT_KEPT and not row.is_of_calls and part.estimate:
            row.comment = _comment_on_not_kept(part.estimate.population)
    closing = closing_rows_by(part.shares) if by in WHOLES else closing_rows(part.total)
    return Profile(ranked(_with_counts([*rows, *closing], part.counts)), part, analysis)


def _with_counts(rows: list[Row], counts: list[Row]) -> list[Row]:
    """The rows with what was counted beside time; first those that have times, too."""
    left = {row.likeness: row for row in counts}
    counted = [left.pop(row.likeness, None) for row in rows]
    made = [replace(row, counts=found.counts) if found else row for row, found in zip(rows, counted, strict=True)]
    return [*made, *left.values()]


def _shares_by(by: str, analysis: Analysis) -> dict[Labels, Share]:
    """The time of all threads by the labels of the rows that close the table."""
    shares: dict[Labels, Share] = {}
    for account in analysis.accounts:
        for number, share in account.threads.items():
            labels = tuple(whole_labels(account.process, number, by).items()) if by in WHOLES else ()
            shares[labels] = shares.get(labels, NOTHING) + share
    return shares


def _counted(experiment: Experiment) -> Counter[str]:
    """How many calls of each kind were counted and not timed."""
    found: Counter[str] = Counter()
    for process in experiment.processes:
        for number, counted in process.counts.items():
            found[process.intrinsic(number).kind] += counted
    return found


def add_passed(kinds: list[Row], passed: int) -> None:
    """Put into the row `sync` how many calls did not wait; where there are such but no row, it is made."""
    of_sync = [row for row in kinds if row.is_of_calls and row.kind == SYNC]
    if passed and not of_sync:
        of_sync = [Row(SYNC, None)]
        kinds += of_sync
    for row in of_sync:
        row.passed = passed
        row.comment = f"{passed:,} uncontended" if passed else ""


class _Rows:
    """Rows in the making: one for each that differs in kind, intrinsic or labels."""

    def __init__(self) -> None:
        self.made: list[Row] = []
        self._numbers: dict[tuple[object, ...], int] = {}

    def number(self, row: Row) -> int:
        """The place in `made` of the row that is like `row`."""
        number = self._numbers.setdefault(row.likeness, len(self.made))
        if number == len(self.made):
            self.made.append(row)
        return number

    def add_records(self, process: Process, grouping: Grouping, records: Records) -> None:
        """Add the `records` of `process`, which have at least the fields that the grouping needs.

        A call inside another one of its row adds no inclusive time.
        """
        for record, number, is_first in self._placed(process, grouping, records):
            self.made[number].sums.add(record.sums, inclusive=is_first)

    def _placed(self, process: Process, grouping: Grouping, records: Records) -> Iterator[tuple[Record, int, bool]]:
        """Each record of `process`, the position of its row, and whether no record around it belongs to that row."""
        needs = ("thread", *grouping.needs)
        picked = itemgetter(*map(records.by.index, needs))
        numbers: dict[Key, int] = {}
        alike: dict[Hashable, int] = {}  # the numbers again, of keys whose stacks only differ in what no row tells

        def number_of(record: Record) -> int:
            key = picked(record.key)
            number = numbers.get(key)
            if number is None:
                told = dict(zip(needs, key, strict=True))
                like = grouping.likeness(process, told)
                number = alike.get(like) if like else None
                if number is None:
                    number = self.number(grouping.row_of(process, told))
                    if like:
                        alike[like] = number
                numbers[key] = number
            return number

        return grouped(records.roots, number_of)

    def add_passed(self, by: str, processes: Iterable[Process]) -> None:
        """Put into the rows of threads or processes how many calls of each did not wait."""
        for process in processes:
            for thread in process.threads:
                if thread.record.passed:
                    labels = whole_labels(process, thread.number, by)
                    self.made[self.number(Row(None, None, labels))].passed += thread.record.passed

    def add_counted(self, grouping: Grouping, processes: Iterable[Process]) -> None:
        """Put into the rows of kinds or intrinsics how many calls of each were counted and not timed."""
        for process in processes:
            for number, counted in process.counts.items():
                self.made[self.number(grouping.row_of(process, {"intrinsic": number}))].counted += counted


class _Sampled(_Rows):
    """The rows of an experiment with sampled transactions. `is_whole`: rows of threads or larger units, whose times are
    known."""

    def __init__(self, grouping: Grouping, is_whole: bool) -> None:
        super().__init__()
        self._grouping = grouping
        self._is_whole = is_whole
        self._within: dict[tuple[str, int], Sums] = {}  # of the kept transactions of an experiment, by row
        self._populations: dict[str, Population] = {}
        self._processes: list[Process] = []

    def add_records(self, process: Process, grouping: Grouping, records: Records) -> None:
        """Add what `records` of `process` hold, what stands for more for itself."""
        self._processes.append(process)
        experiment = experiment_of(process)
        self._populations.setdefault(experiment, Population()).add(population_of(process, records))
        stands = {id(record): standing for record, standing in standings(process, records)}
        for record, number, is_first in self._placed(process, grouping, records):
            within = self._within.setdefault((experiment, number), Sums())
            self._add(self.made[number].sums, within, record.sums, stands[id(record)], is_first)

    def _add(self, exact: Sums, within: Sums, sums: Sums, standing: int, is_first: bool) -> None:
        """Add to the known or to the estimated part of a row. The self time of a transaction is part of the estimate;
        for one that was not sampled it is its whole time."""
        if standing in (OUTSIDE, EXACT, ALWAYS):
            exact.add(sums, inclusive=is_first)
        elif standing in (KEPT, PASSED_OVER):
            self_ns = (sums.self_wall_ns, sums.self_cpu_ns) if self._is_whole else (0, 0)
            exact.add(replace(sums, self_wall_ns=self_ns[0], self_cpu_ns=self_ns[1]), inclusive=is_first)
            if standing == KEPT and not self._is_whole:
                within.add(Sums(self_wall_ns=sums.self_wall_ns, self_cpu_ns=sums.self_cpu_ns))
        elif self._is_whole:
            exact.add(replace(sums, calls=0, errors=0, bytes=0, rows=0), inclusive=is_first)
            within.add(Sums(**{name: getattr(sums, name) for name in SCALED}))
        else:
            within.add(sums, inclusive=is_first)

    def finish(self, experiment: Experiment, is_scaled: bool) -> Estimate:
        """Make the estimates, with their margins."""
        for name, population in self._populations.items():
            parts = {row: sums for (each, row), sums in self._within.items() if each == name}
            if is_scaled and population.is_known:
                parts = {row: scaled(sums, population, not self._is_whole) for row, sums in parts.items()}
                if not self._is_whole:
                    settle(list(parts.values()), population)
            elif not self._is_whole and population.passed_wall_ns:
                self._add_not_kept(population)
            for row, sums in parts.items():
                self.made[row].sums.add(sums)
        made = _estimate_of(experiment, self._populations, is_scaled)
        margins = together(self._margins()) if is_scaled else {}
        for row, found in enumerate(self.made):
            found.margin = margins.get((row, found.kind))
            if found.margin and self._is_whole:
                found.margin.self_wall_ns = 0.0
        made.margins = {what: margin for what, margin in margins.items() if what is None or isinstance(what, str)}
        return made

    def _add_not_kept(self, population: Population) -> None:
        row = not_kept_row(population.passed_wall_ns, population.passed_cpu_ns)
        number = self.number(row)
        if self.made[number] is not row:
            self.made[number].sums.add(row.sums)

    def _margins(self) -> Iterator[tuple[Hashable, Margin]]:
        for name, population in self._populations.items():
            variation = Variation()
            for process in self._processes:
                if experiment_of(process) == name and process.log.one_in:
                    variation.add(process, self._row_of(process))
            yield from variation.margins(population)

    def _row_of(self, process: Process) -> Callable[[Event], Hashable]:
        """What gives the row of an event of `process`, with its kind."""
        known: dict[Key, tuple[int, str | None]] = {}
        needs = ("thread", *self._grouping.needs)

        def row_of(event: Event) -> Hashable:
            key = tuple([getattr(event, name) for name in needs])
            if key not in known:
                row = self._grouping.row_of(process, dict(zip(needs, key, strict=True)))
                known[key] = (self.number(row), row.kind)
            return known[key]

        return row_of


def _comment_on_not_kept(of: Population) -> str:
    return f"in transactions that were not sampled: {of.seen - of.kept:,} of {of.seen:,}"


def _estimate_of(experiment: Experiment, populations: Mapping[str, Population], is_scaled: bool) -> Estimate:
    whole = Population()
    for each in populations.values():
        whole.add(each)
    log = next(process.log for process in experiment.processes if process.log.one_in)
    seed = log.settings.get("INTERPOSE_SEED", "")
    return Estimate(whole, log.one_in, seed, is_scaled, started=started_within(experiment))


def by_kind(made: Profile) -> list[Row]:
    """The rows of a profile by kind, in the order of `KINDS`, then the closing rows, then idle time."""
    alike = _Rows()
    for row in made.rows:
        if row.is_of_calls:
            kind = START_UP if row.intrinsic == START_UP else row.kind
            found = alike.made[alike.number(row_of_kind(kind))]
            found.sums.add(row.sums)
            found.margin = made.estimate.margins.get(kind) if made.estimate else None
    for kind, counted in made.part.counted.items():
        alike.made[alike.number(row_of_kind(kind))].counted += counted
    kinds = alike.made
    add_passed(kinds, made.part.passed)
    order = {kind: place for place, kind in enumerate(KINDS)}
    kinds.sort(key=lambda row: (order.get(row.kind or "", len(order)), row.kind))
    not_kept = [row for row in made.rows if row.kind == NOT_KEPT and not row.is_of_calls]
    return ranked([*kinds, *closing_rows(made.total), *not_kept])


def closing_rows(whole: Share) -> list[Row]:
    """The rows `code`, `overhead`, calls in progress, the time before a ring, and the time of pauses."""
    in_progress = closing_row(IN_PROGRESS, whole.open_wall_ns, whole.open_cpu_ns, "calls not ended")
    before = closing_row(BEFORE, whole.before_wall_ns, whole.before_cpu_ns, "its calls were overwritten")
    rows = [
        closing_row(CODE, whole.program_wall_ns, whole.program_cpu_ns, "between calls"),
        closing_row(OVERHEAD, whole.own_wall_ns, whole.own_cpu_ns, "outside of calls: start measured, calls estimated"),
        *([in_progress] if whole.open_wall_ns else []),
        *([before] if whole.before_wall_ns else []),
    ]
    if whole.paused_wall_ns:
        rows.append(closing_row(PAUSED, whole.paused_wall_ns, whole.paused_cpu_ns, "not recorded; CPU estimated"))
    return rows


def closing_rows_by(shares: Mapping[Labels, Share]) -> list[Row]:
    """The same rows of each thread, or of what threads are a part of, those that took most first."""
    rows = [replace(row, labels=dict(labels)) for labels, share in shares.items() for row in closing_rows(share)]
    there = [row for row in rows if row.sums.self_wall_ns or row.sums.self_cpu_ns]
    order = {kind: place for place, kind in enumerate((CODE, OVERHEAD, IN_PROGRESS, BEFORE, PAUSED))}
    return sorted(there, key=lambda row: (order[row.kind or ""], *largest_first(row)))
