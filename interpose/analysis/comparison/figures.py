"""The figures of a run, row by row, and measures of them.

A comparison needs only rows with a name and figures; any grouping of `interpose.analysis.calls.profile` makes them.
Names are the same in other runs: they have no process numbers, and files are relative to the working directory.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from interpose.analysis.analysis import Analysis
from interpose.analysis.calls.groupings import GROUPINGS
from interpose.analysis.calls.profile import profile
from interpose.analysis.calls.rows import CODE, Row
from interpose.analysis.consolidation.histogram import FINE
from interpose.analysis.consolidation.sums import Sums
from interpose.analysis.profile.rows import WITH_CODE, with_code
from interpose.analysis.recording.elapsed import elapsed_ns
from interpose.analysis.transactions.response_times import transactions

FILES = ("site", "file")  # labels that begin with the name of a file
NUMBERED = ("process", "thread")  # labels that begin with a number that differs in every run
TRANSACTION = "transaction"
GROUPED_BY = (*(by for by in GROUPINGS if by != "experiment"), TRANSACTION)  # each run is an experiment
ALL = "all"
ELAPSED = "elapsed"


class Name(NamedTuple):
    """The name of a row; the kind for rows without a call (`code`)."""

    kind: str | None = None
    intrinsic: str | None = None
    labels: tuple[tuple[str, str], ...] = ()

    @property
    def parts(self) -> tuple[str, ...]:
        """The words that can name it."""
        called = [each for each in (self.intrinsic, *(text for _, text in self.labels)) if each]
        return (*called, " ".join(called)) if called else (self.kind or "",)


@dataclass
class Figures:
    """What the calls of a row took in a run: `total_ns` without the calls inside, `wall_ns` with them; `spread` has
    the histogram of their wall times, where that was asked for. `elapsed_ns` is how long the run lasted, of all rows
    together only: threads and processes work at the same time."""

    calls: int = 0
    total_ns: int = 0
    wall_ns: int = 0
    cpu_ns: int = 0
    spread: Sums = field(default_factory=Sums)
    elapsed_ns: int = 0

    def add(self, other: Figures) -> None:
        """Take what `other` has in as well."""
        self.calls += other.calls
        self.total_ns += other.total_ns
        self.wall_ns += other.wall_ns
        self.cpu_ns += other.cpu_ns
        self.spread.add(other.spread)

    def percentile_ns(self, percent: float) -> int:
        """The wall time that this percentage of calls did not exceed, within 1 %; 0 without calls."""
        return self.spread.percentile_ns(percent) or 0


class Measure(NamedTuple):
    """A measure of figures: its meaning, whether it is a time in ns, whether it needs the single calls, and how finely
    it is known: to that part of it."""

    meaning: str
    of: Callable[[Figures], float]
    is_time: bool = True
    needs_calls: bool = False
    grain: float = 0.0


def _percentile(percent: int) -> Measure:
    meaning = f"wall time that {percent} % of the calls did not exceed"
    return Measure(meaning, lambda figures: figures.percentile_ns(percent), needs_calls=True, grain=1 / FINE)


PERCENTILES = {"median": 50, "p50": 50, "p90": 90, "p95": 95, "p99": 99}
MEASURES = {
    "total": Measure("self wall time, without the recorded calls inside", lambda figures: figures.total_ns),
    "wall": Measure("inclusive wall time", lambda figures: figures.wall_ns),
    "cpu": Measure("self CPU time", lambda figures: figures.cpu_ns),
    "wait": Measure("total less cpu", lambda figures: max(figures.total_ns - figures.cpu_ns, 0)),
    "calls": Measure("number of calls", lambda figures: figures.calls, is_time=False),
    "mean": Measure("inclusive wall time per call", lambda figures: figures.wall_ns / (figures.calls or 1)),
    **{name: _percentile(percent) for name, percent in PERCENTILES.items()},
    "max": Measure("wall time of the longest call", lambda figures: figures.spread.wall_most_ns, needs_calls=True),
    ELAPSED: Measure("how long the whole run lasted; rows have none", lambda figures: figures.elapsed_ns),
}


@dataclass
class Run:
    """The rows of one run, by name. Rows that are `aside` are not the program's work: waiting for work, the cost of
    recording, and, by transaction, the time outside of transactions and those in progress at the end."""

    name: str
    rows: dict[Name, Figures]
    aside: frozenset[Name] = frozenset()
    elapsed_ns: int = 0

    @property
    def total_ns(self) -> int:
        """The time of all rows but those aside."""
        return sum(figures.total_ns for name, figures in self.rows.items() if name not in self.aside)

    @property
    def whole(self) -> Figures:
        """All rows but those aside."""
        found = Figures(elapsed_ns=self.elapsed_ns)
        for name, figures in self.rows.items():
            if name not in self.aside:
                found.add(figures)
        return found


def run_of(analysis: Analysis, by: str, with_calls: bool = False) -> Run:
    """What an experiment took, grouped by one of `GROUPED_BY`; histograms of calls only if asked for.

    By transaction the figures are of response times, which have no calls inside.
    """
    experiment = analysis.experiment
    if by == TRANSACTION:
        return _of_transactions(analysis)
    cwd = experiment.founder.log.cwd
    rows: dict[Name, Figures] = {}
    aside: set[Name] = set()
    made = profile(analysis, by)
    for row in (with_code(made, by) if by in WITH_CODE else made).rows:
        sums, name = row.sums, _name(row, cwd)
        found = Figures(sums.calls + row.counted, sums.self_wall_ns, sums.wall_ns, sums.self_cpu_ns)
        rows.setdefault(name, Figures()).add(found)
        if row.is_idle or not (row.is_of_calls or row.is_of_code or row.kind == CODE):
            aside.add(name)
    for name, spread in (spreads(analysis, by) if with_calls else {}).items():
        rows.setdefault(name, Figures()).spread.add(spread)
    return Run(experiment.name, rows, frozenset(aside), elapsed_ns(analysis))


def _of_transactions(analysis: Analysis) -> Run:
    rows: dict[Name, Figures] = {}
    aside: set[Name] = set()
    for row in transactions(analysis).rows:
        name = Name(labels=((TRANSACTION, row.name),))
        rows[name] = Figures(row.sums.calls, row.response_ns, row.response_ns, row.cpu_ns, row.sums)
        if not row.is_named:
            aside.add(name)
    return Run(analysis.experiment.name, rows, frozenset(aside), elapsed_ns(analysis))


def spreads(analysis: Analysis, by: str) -> Mapping[Name, Sums]:
    """The figures of the calls of each row with their histogram, for percentiles."""
    experiment, grouping = analysis.experiment, GROUPINGS[by]
    cwd = experiment.founder.log.cwd
    fields = ("thread", *grouping.needs)
    found: dict[Name, Sums] = {}
    for process in experiment.processes:
        for record in analysis.records(process, fields, histograms=True).calls():
            row = grouping.row_of(process, dict(zip(fields, record.key, strict=True)))
            found.setdefault(_name(row, cwd), Sums()).add(record.sums)
    return found


def _name(row: Row, cwd: str) -> Name:
    labels = tuple((label, _alike(label, text, cwd)) for label, text in row.labels.items())
    return Name(row.kind, row.intrinsic, labels)


def _alike(label: str, text: str, cwd: str) -> str:
    """A label as it is in other runs too."""
    if label in FILES:
        return text.removeprefix(f"{cwd.rstrip('/')}/") if cwd else text
    if label not in NUMBERED:
        return text
    _, _, rest = text.partition(" ")
    return rest or ("founder" if label == "process" else "others")
