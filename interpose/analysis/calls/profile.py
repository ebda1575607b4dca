"""From sums to rows: what each kind, intrinsic, site, function, statement, file, program, thread or process took.

The self times of all rows, of the row `code` and of the row `overhead` (and, where there are such, of the rows
`before the ring` and `paused`) add up to the thread time, to the nanosecond (`interpose.analysis.calls.account`).
"""

from __future__ import annotations

import os
import pwd
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from interpose.analysis.analysis import Analysis
from interpose.analysis.calls.account import NOTHING, ProcessAccount, Share
from interpose.analysis.consolidation.records import Key, Record, Records, grouped
from interpose.analysis.consolidation.sums import Sums, total
from interpose.analysis.profile.balance import Code
from interpose.analysis.recording.lineage import script_of
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
from interpose.experiments.model.process import UNKNOWN, UNKNOWN_SITE, Process, Site
from interpose.experiments.model.sources import path_of
from interpose.kinds import IDLE, KINDS
from interpose.legacy.codes import STATEMENT

CODE = "code"  # of the program, between the calls
OVERHEAD = "overhead"  # of recording
BEFORE = "before the ring"
PAUSED = "paused"
NOT_KEPT = "not kept"
SYNC = "sync"
START_UP = "startup"  # of the interpreter: what it calls before the program's first line
UNCERTAIN_TIMES = 10
_KIND_COMMENTS = {IDLE: "waiting for work", START_UP: "while Python began"}


@dataclass
class Row:
    """What some calls took: `kind` and `intrinsic` are None where they differ, `labels` what else it is.

    `is_of_calls` is false of the program's row and our own. `passed` are calls of the kind `sync` that did not
    wait, in the rows of that kind, of a thread or a process; they are in no other figure. `counted` are calls of
    the kind or the intrinsic that were not timed: no other figure has them, and their time is the program's.
    `margin` is of what is estimated of it, where transactions were sampled and enough were kept. `code` is there in the
    rows of functions and lines that were sampled: what they took between the calls; `tasks` is the CPU time of it in
    asynchronous tasks and greenlets, by their names.
    """

    kind: str | None
    intrinsic: str | None
    labels: dict[str, str] = field(default_factory=dict)
    site: Site | None = None
    comment: str = ""
    sums: Sums = field(default_factory=Sums)
    is_of_calls: bool = True
    passed: int = 0
    counted: int = 0
    margin: Margin | None = None
    code: Code | None = None
    tasks: dict[str, int] = field(default_factory=dict)

    @property
    def likeness(self) -> tuple[object, ...]:
        """What no other row of the same grouping has."""
        return (self.kind, self.intrinsic, self.site, *self.labels.items())

    @property
    def is_of_code(self) -> bool:
        """Whether it is of a function or a line that was sampled."""
        return self.code is not None

    @property
    def is_timed(self) -> bool:
        """Whether its times tell anything."""
        return self.sums.calls > 0 or not self.counted

    @property
    def is_idle(self) -> bool:
        """Whether the row is of calls that waited for work."""
        return self.is_of_calls and self.kind == IDLE


@dataclass
class Profile:
    """The rows of a grouping, the largest self wall time first; then what is the program's and our own.

    Rows of calls that waited for work are the last of all. Of some calls alone, those of a label, there is nothing that
    they would be a part of: no closing rows, and the total is what they took. `estimate` is there where transactions
    were sampled: counts and times are then estimated for all of them, where `is_scaled`.
    """

    analysis: Analysis
    rows: list[Row]
    estimate: Estimate | None = None

    @property
    def total(self) -> Share:
        """All threads of all processes; of a part, its calls."""
        if not self.analysis.is_part:
            return self.analysis.total
        sums = total(row.sums for row in self.rows)
        return Share(sums.self_wall_ns, sums.self_cpu_ns, 0, 0, 0, 0)

    @property
    def passed(self) -> int:
        """Calls of the kind `sync` that did not wait, and were not recorded."""
        return sum(each.passed for each in self.analysis.accounts)


@dataclass(frozen=True)
class Grouping:
    """One way to group: the fields of the event that it needs, and the row that a key belongs to."""

    needs: tuple[str, ...]
    row_of: Callable[[Process, Mapping[str, int]], Row]


def profile(analysis: Analysis, by: str, is_scaled: bool = True) -> Profile:
    """The profile of what is analysed, grouped by one of `GROUPINGS`.

    Where transactions were sampled, what was called within those kept stands for what was called within all, unless
    not `is_scaled`; where only some calls are looked at, they stand for themselves.
    """
    experiment, grouping = analysis.experiment, GROUPINGS[by]
    sampled = is_sampled(experiment)
    rows = _Sampled(grouping, by in WHOLES) if sampled and not analysis.is_part else _Rows()
    for process in experiment.processes:
        rows.add_records(process, grouping, analysis.records_of_threads(process, grouping.needs))
    if analysis.is_part:
        estimate = _estimate_of(experiment, {}, is_scaled=False) if sampled else None
        return Profile(analysis, ranked(sorted(rows.made, key=largest_first)), estimate)
    if by in WHOLES:
        rows.add_passed(by, experiment.processes)
    if by in COUNTED:
        rows.add_counted(grouping, experiment.processes)
    estimate = rows.finish(experiment, is_scaled) if isinstance(rows, _Sampled) else None
    made = Profile(analysis, sorted(rows.made, key=largest_first), estimate)
    if by == "kind":
        add_passed(made.rows, made.passed)
    closing = closing_rows_by(by, analysis.accounts) if by in WHOLES else closing_rows(made.total)
    made.rows = ranked([*made.rows, *closing])
    return made


def largest_first(row: Row) -> tuple[object, ...]:
    """The order of rows: by self wall time; where that is the same by name, for the order of records says nothing."""
    return (-row.sums.self_wall_ns, row.kind or "", row.intrinsic or "", *row.labels.values())


def ranked(rows: Iterable[Row]) -> list[Row]:
    """The rows of calls and of code, then those of the program and our own, then what waited for work."""
    return sorted(rows, key=lambda row: 2 if row.is_idle else 0 if row.is_of_calls or row.is_of_code else 1)


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
        """Add what `records` of `process` hold, by whatever fields the grouping needs, and perhaps more.

        A call made inside another of its row adds no inclusive time.
        """
        for record, number, is_first in self._placed(process, grouping, records):
            self.made[number].sums.add(record.sums, inclusive=is_first)

    def _placed(self, process: Process, grouping: Grouping, records: Records) -> Iterator[tuple[Record, int, bool]]:
        """Each record of `process`, the place of its row, and whether no record around it is of that row."""
        numbers: dict[Key, int] = {}

        def number_of(record: Record) -> int:
            number = numbers.get(record.key)
            if number is None:
                row = grouping.row_of(process, dict(zip(records.by, record.key, strict=True)))
                numbers[record.key] = number = self.number(row)
            return number

        return grouped(records.roots, number_of)

    def add_passed(self, by: str, processes: Iterable[Process]) -> None:
        """Put into the rows of threads or processes how many calls of each did not wait."""
        for process in processes:
            for thread in process.threads:
                if thread.record.passed:
                    labels = _whole_labels(process, thread.number, by)
                    self.made[self.number(Row(None, None, labels))].passed += thread.record.passed

    def add_counted(self, grouping: Grouping, processes: Iterable[Process]) -> None:
        """Put into the rows of kinds or intrinsics how many calls of each were counted and not timed."""
        for process in processes:
            for number, counted in process.counts.items():
                self.made[self.number(grouping.row_of(process, {"intrinsic": number}))].counted += counted


class _Sampled(_Rows):
    """Rows of an experiment whose transactions were sampled. `is_whole`: the rows are of threads or more, whose times
    are known."""

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
        """Add to what is known of a row, or to what is estimated of it. Of a transaction the self time is a part of
        what is estimated: of those passed over it is all that they took."""
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
        """Estimate what is to be estimated, and how well."""
        for name, population in self._populations.items():
            parts = {row: sums for (each, row), sums in self._within.items() if each == name}
            if is_scaled and population.is_known:
                parts = {row: scaled(sums, population, not self._is_whole) for row, sums in parts.items()}
                if not self._is_whole:
                    settle(list(parts.values()), population)
            elif not self._is_whole and population.passed_wall_ns:
                self.made.append(_of_not_kept(population))
            for row, sums in parts.items():
                self.made[row].sums.add(sums)
        made = _estimate_of(experiment, self._populations, is_scaled)
        made.margins = together(self._margins()) if is_scaled else {}
        for row, found in enumerate(self.made):
            found.margin = made.margins.get((row, found.kind))
            if found.margin and self._is_whole:
                found.margin.self_wall_ns = 0.0
        return made

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


def _of_not_kept(population: Population) -> Row:
    """The row of what transactions took of which nothing else is known."""
    comment = f"in transactions that were passed over: {population.kept:,} of {population.seen:,} kept"
    return closing_row(NOT_KEPT, population.passed_wall_ns, population.passed_cpu_ns, comment)


def _estimate_of(experiment: Experiment, populations: Mapping[str, Population], is_scaled: bool) -> Estimate:
    whole = Population()
    for each in populations.values():
        whole.add(each)
    log = next(process.log for process in experiment.processes if process.log.one_in)
    seed = log.settings.get("INTERPOSE_SEED", "")
    return Estimate(whole, log.one_in, seed, is_scaled, started=started_within(experiment))


def by_kind(made: Profile) -> list[Row]:
    """The rows of a profile by kind, in the order of `KINDS`, with the closing rows and then what was idle."""
    alike = _Rows()
    for row in made.rows:
        if row.is_of_calls:
            kind = START_UP if row.intrinsic == START_UP else row.kind
            found = alike.made[alike.number(_row_of_kind(kind))]
            found.sums.add(row.sums)
            found.margin = made.estimate.margins.get(kind) if made.estimate else None
    alike.add_counted(GROUPINGS["kind"], made.analysis.experiment.processes)
    kinds = alike.made
    add_passed(kinds, made.passed)
    order = {kind: place for place, kind in enumerate(KINDS)}
    kinds.sort(key=lambda row: (order.get(row.kind or "", len(order)), row.kind))
    not_kept = [row for row in made.rows if row.kind == NOT_KEPT and not row.is_of_calls]
    return ranked([*kinds, *closing_rows(made.total), *not_kept])


def closing_rows(whole: Share) -> list[Row]:
    """The rows of the program, of our own cost, of the time whose events a ring no longer has, and of the time when
    recording was paused."""
    before = closing_row(BEFORE, whole.before_wall_ns, whole.before_cpu_ns, "its calls were overwritten")
    rows = [
        closing_row(CODE, whole.program_wall_ns, whole.program_cpu_ns, "between the calls"),
        closing_row(
            OVERHEAD, whole.own_wall_ns, whole.own_cpu_ns, "recording: start measured, calls estimated"
        ),
        *([before] if whole.before_wall_ns else []),
    ]
    if whole.paused_wall_ns:
        rows.append(closing_row(PAUSED, whole.paused_wall_ns, whole.paused_cpu_ns, "not recorded; CPU estimated"))
    return rows


def closing_rows_by(by: str, accounts: Iterable[ProcessAccount]) -> list[Row]:
    """The same rows of each thread, or of what threads are a part of, those that took most first."""
    shares: dict[tuple[tuple[str, str], ...], Share] = {}
    for account in accounts:
        for number, share in account.threads.items():
            labels = tuple(_whole_labels(account.process, number, by).items())
            shares[labels] = shares.get(labels, NOTHING) + share
    rows = [replace(row, labels=dict(labels)) for labels, share in shares.items() for row in closing_rows(share)]
    there = [row for row in rows if row.sums.self_wall_ns or row.sums.self_cpu_ns]
    order = {kind: place for place, kind in enumerate((CODE, OVERHEAD, BEFORE, PAUSED))}
    return sorted(there, key=lambda row: (order[row.kind or ""], *largest_first(row)))


def wait_ns(row: Row) -> int:
    """Self time that was neither CPU time nor another recorded call."""
    return max(row.sums.self_wall_ns - row.sums.self_cpu_ns, 0)


def is_uncertain(total_ns: int, calls: int, inside_ns: int, resolution_ns: int) -> bool:
    """Whether `total_ns` over `calls` is, for each call, below ten times what the clock can tell or costs."""
    return 0 < total_ns < UNCERTAIN_TIMES * max(inside_ns, resolution_ns) * calls


def own_lines(rows: Iterable[Row]) -> list[Row]:
    """Those rows of a grouping by site whose line is the program's own, and which did not wait for work; but for
    statements, which take no time."""
    own = (row for row in rows if row.site and row.site.own)
    return [row for row in own if not row.is_idle and row.intrinsic != STATEMENT]


def closing_row(kind: str, wall_ns: int, cpu_ns: int, comment: str) -> Row:
    """A row of time that is in no call."""
    sums = Sums(wall_ns=wall_ns, cpu_ns=cpu_ns, self_wall_ns=wall_ns, self_cpu_ns=cpu_ns)
    return Row(kind, None, sums=sums, comment=comment, is_of_calls=False)


def _of_kind(process: Process, key: Mapping[str, int]) -> Row:
    return _row_of_kind(process.intrinsic(key["intrinsic"]).kind)


def _row_of_kind(kind: str | None) -> Row:
    return Row(kind, None, comment=_KIND_COMMENTS.get(kind or "", ""))


def _of_intrinsic(process: Process, key: Mapping[str, int]) -> Row:
    intrinsic = process.intrinsic(key["intrinsic"])
    return Row(intrinsic.kind, intrinsic.name)


def _of_start_up(process: Process, key: Mapping[str, int]) -> Row:
    return Row(process.intrinsic(key["intrinsic"]).kind, START_UP)


def _of_site(process: Process, key: Mapping[str, int]) -> Row:
    if process.is_start_up(key["stack"]):
        return _of_start_up(process, key)
    row = _of_intrinsic(process, key)
    row.site = process.own_line(key["stack"]) or UNKNOWN_SITE
    row.labels = {"site": f"{row.site.file}:{row.site.line or UNKNOWN}", "function": row.site.function}
    return row


def _of_function(process: Process, key: Mapping[str, int]) -> Row:
    if process.is_start_up(key["stack"]):
        return _of_start_up(process, key)
    row = _of_intrinsic(process, key)
    site = process.own_line(key["stack"]) or UNKNOWN_SITE
    row.labels = {"function": site.function, "file": site.file}
    return row


def _of_detail(process: Process, key: Mapping[str, int]) -> Row:
    if process.is_start_up(key["stack"]):
        return _of_start_up(process, key)
    row = _of_intrinsic(process, key)
    row.labels = {"detail": process.string(key["detail"])}
    return row


def _of_what(kind: str, label: str) -> Callable[[Process, Mapping[str, int]], Row]:
    """What gives the row of a statement or a file: those of the `kind` by what they were about, the others by kind."""

    def row_of(process: Process, key: Mapping[str, int]) -> Row:
        found = process.intrinsic(key["intrinsic"]).kind
        if found != kind:
            return Row(found, None, {label: ""})
        is_start_up = process.is_start_up(key["stack"])
        return Row(found, None, {label: START_UP if is_start_up else process.string(key["detail"])})

    return row_of


def _of_whole(by: str) -> Callable[[Process, Mapping[str, int]], Row]:
    """What gives the row of a thread or of what it is a part of."""

    def row_of(process: Process, key: Mapping[str, int]) -> Row:
        return Row(_idle_or_none(process, key), None, _whole_labels(process, key["thread"], by))

    return row_of


def _whole_labels(process: Process, thread: int, by: str) -> dict[str, str]:
    """The labels of a thread's row, or of that of what it is a part of."""
    if by == "thread":
        return {"thread": thread_label(process, thread), "process": process_label(process)}
    return {by: _WHOLE_LABELS[by](process)}


def _idle_or_none(process: Process, key: Mapping[str, int]) -> str | None:
    """What waited for work is in a row of its own, of each thread and process too."""
    return IDLE if process.intrinsic(key["intrinsic"]).kind == IDLE else None


def thread_label(process: Process, number: int) -> str:
    """The kernel's number of the thread `number` and, if there is one, its name; `main` of the main one."""
    for thread in process.threads:
        if thread.number == number:
            name = "main" if thread.record.main else process.string(thread.record.name)
            return f"{thread.record.tid} {name}".rstrip()
    return UNKNOWN


def task_label(process: Process, number: int) -> str:
    """The number of a task and what it is called, where that is known; nothing of what is no task's."""
    return f"{number} {process.task_names.get(number, '')}".rstrip() if number else ""


def process_label(process: Process) -> str:
    """The number of `process` and, of a descendant, its lineage; before it the experiment, where there are several."""
    return f"{process.experiment} {process.log.pid} {process.lineage}".strip()


def experiment_label(process: Process) -> str:
    """The name of the experiment that `process` is in."""
    return process.place.partition("/")[0]


def user_label(process: Process) -> str:
    """The user's name, where the user is of this host; else the number."""
    uid = process.log.user.get("uid", UNKNOWN)
    if process.log.system.get("host") != os.uname().nodename:
        return uid
    try:
        return pwd.getpwuid(int(uid)).pw_name
    except (KeyError, ValueError, OverflowError):
        return uid


def terminal_label(process: Process) -> str:
    """The terminal that the process had; `none` where it had none."""
    return process.log.user.get("terminal", UNKNOWN) or "none"


def host_label(process: Process) -> str:
    """The host that the process ran on."""
    return process.log.system.get("host", UNKNOWN)


def program_label(process: Process) -> str:
    """What the process ran: the script, the module with its -m, or -c. A script has one name, however it was given: its
    path, below the directory of the founder from there."""
    script = script_of(process)
    if not script or script.startswith("-") or not process.log.cwd:
        return script or process.log.executable or UNKNOWN
    founder = process
    while founder.starter:
        founder = founder.starter
    return path_of(process, script).removeprefix(founder.log.cwd.rstrip("/") + "/")


_WHOLE_LABELS = {
    "program": program_label,
    "process": process_label,
    "experiment": experiment_label,
    "user": user_label,
    "terminal": terminal_label,
    "host": host_label,
}
WHOLES = ("thread", *_WHOLE_LABELS)
COUNTED = ("kind", "intrinsic")


GROUPINGS = {
    "kind": Grouping(("intrinsic",), _of_kind),
    "intrinsic": Grouping(("intrinsic",), _of_intrinsic),
    "site": Grouping(("intrinsic", "stack"), _of_site),
    "function": Grouping(("intrinsic", "stack"), _of_function),
    "detail": Grouping(("intrinsic", "stack", "detail"), _of_detail),
    "statement": Grouping(("intrinsic", "stack", "detail"), _of_what("db", "statement")),
    "file": Grouping(("intrinsic", "stack", "detail"), _of_what("file", "file")),
    **{by: Grouping(("intrinsic",), _of_whole(by)) for by in WHOLES},
}
