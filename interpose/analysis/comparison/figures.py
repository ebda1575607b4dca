"""What a run took, row by row: figures that add up, and measures of them.

A comparison needs of a run no more than rows with a name and figures; any grouping of `interpose.analysis.profile`
makes them. Names are as they are in other runs too: without numbers of processes, files from the working directory on.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from interpose.analysis.profile import GROUPINGS, PROGRAM, Profile, Row
from interpose.analysis.sums import LONGEST_NS
from interpose.experiments.experiment import Experiment

FILES = ("site", "file")  # labels that begin with the name of a file
NUMBERED = ("process", "thread")  # labels that begin with a number which each run has anew
GROUPED_BY = tuple(by for by in GROUPINGS if by != "experiment")  # each run is one
ALL = "all"


class Name(NamedTuple):
    """What a row is called: where nothing was called (`program`), the kind says what it is."""

    kind: str | None = None
    intrinsic: str | None = None
    labels: tuple[tuple[str, str], ...] = ()

    @property
    def parts(self) -> tuple[str, ...]:
        """What of it may stand for it."""
        called = [each for each in (self.intrinsic, *(text for _, text in self.labels)) if each]
        return (*called, " ".join(called), *([] if called else [self.kind or ""]))


@dataclass
class Figures:
    """What the calls of a row took in a run: `total_ns` without the calls inside, `wall_ns` with them, each call's
    `walls`, in ns, where they were asked for."""

    calls: int = 0
    total_ns: int = 0
    wall_ns: int = 0
    cpu_ns: int = 0
    walls: array[int] = field(default_factory=lambda: array("Q"))

    def add(self, other: Figures) -> None:
        """Take what `other` has in as well."""
        self.calls += other.calls
        self.total_ns += other.total_ns
        self.wall_ns += other.wall_ns
        self.cpu_ns += other.cpu_ns
        self.walls.extend(other.walls)

    def quantile(self, part: float) -> float:
        """The wall time that `part` of the calls did not take longer than; 0 without calls."""
        ordered = sorted(self.walls)
        return float(ordered[max(math.ceil(part * len(ordered)) - 1, 0)]) if ordered else 0.0


class Measure(NamedTuple):
    """A measure of figures: its meaning, whether it is a time in ns, and whether it needs the single calls."""

    meaning: str
    of: Callable[[Figures], float]
    is_time: bool = True
    needs_calls: bool = False


def _quantile(part: float) -> Callable[[Figures], float]:
    return lambda figures: figures.quantile(part)


MEASURES = {
    "total": Measure("self wall time: without the recorded calls inside", lambda figures: figures.total_ns),
    "wall": Measure("inclusive wall time", lambda figures: figures.wall_ns),
    "cpu": Measure("self CPU time", lambda figures: figures.cpu_ns),
    "wait": Measure("total less cpu", lambda figures: max(figures.total_ns - figures.cpu_ns, 0)),
    "calls": Measure("number of calls", lambda figures: figures.calls, is_time=False),
    "mean": Measure("inclusive wall time by call", lambda figures: figures.wall_ns / (figures.calls or 1)),
    **{
        name: Measure(f"wall time that {round(part * 100)} % of the calls did not exceed", _quantile(part), True, True)
        for name, part in (("median", 0.5), ("p50", 0.5), ("p90", 0.9), ("p95", 0.95), ("p99", 0.99))
    },
    "max": Measure("wall time of the longest call", _quantile(1.0), True, True),
}


@dataclass
class Run:
    """The rows of one run, by name. Those that are `aside` are not the program's doing: waiting for work, and what
    recording took."""

    name: str
    rows: dict[Name, Figures]
    aside: frozenset[Name] = frozenset()

    @property
    def total_ns(self) -> int:
        """The time of all rows but those aside."""
        return sum(figures.total_ns for name, figures in self.rows.items() if name not in self.aside)

    @property
    def whole(self) -> Figures:
        """All rows but those aside."""
        found = Figures()
        for name, figures in self.rows.items():
            if name not in self.aside:
                found.add(figures)
        return found


def run_of(experiment: Experiment, made: Profile, by: str, with_calls: bool = False) -> Run:
    """What `experiment` took by its profile, grouped by one of `GROUPED_BY`; each call's time only if asked for."""
    cwd = experiment.founder.log.cwd
    rows: dict[Name, Figures] = {}
    aside = set()
    for row in made.rows:
        sums, name = row.sums, _name(row, cwd)
        found = Figures(sums.calls + row.counted, sums.self_wall_ns, sums.wall_ns, sums.self_cpu_ns)
        rows.setdefault(name, Figures()).add(found)
        if row.is_idle or not (row.is_of_calls or row.kind == PROGRAM):
            aside.add(name)
    for name, walls in (call_walls(experiment, by) if with_calls else {}).items():
        rows.setdefault(name, Figures()).walls.extend(walls)
    return Run(experiment.name, rows, frozenset(aside))


def call_walls(experiment: Experiment, by: str) -> Mapping[Name, array[int]]:
    """The wall time of each call, by row: what is needed for percentiles."""
    grouping, cwd = GROUPINGS[by], experiment.founder.log.cwd
    found: dict[Name, array[int]] = {}
    fields = ("thread", *grouping.needs)
    for process in experiment.processes:
        if process.events is None:
            continue
        picker = process.events.layout.unsigned(("wall_ns", *fields)).picker(("wall_ns", *fields))
        known: dict[tuple[int, ...], array[int]] = {}
        for block in process.events.blocks():
            for wall_ns, *numbers in picker.many(block.events):
                key = tuple(numbers)
                walls = known.get(key)
                if walls is None:
                    row = grouping.row_of(process, dict(zip(fields, key, strict=True)))
                    walls = known[key] = found.setdefault(_name(row, cwd), array("Q"))
                if wall_ns <= LONGEST_NS:
                    walls.append(wall_ns)
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
