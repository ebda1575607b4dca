"""Two sides, of one run or of several each, compared row by row."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import reduce
from statistics import fmean

from interpose.analysis.comparison.differences import (
    CHANGED,
    NOT_ENOUGH,
    RUNS_AT_LEAST,
    TOLERANCE,
    UNCHANGED,
    Difference,
    differences,
)
from interpose.analysis.comparison.figures import ALL, ELAPSED, MEASURES, Figures, Name, Run

MATTERS_FROM = 0.01  # of the time on a side


@dataclass(frozen=True)
class Compared:
    """A row, or all of them: how it differs, its calls in a run of each side, and whether it matters."""

    name: Name
    difference: Difference
    calls_a: float
    calls_b: float
    matters: bool

    @property
    def verdict(self) -> str:
        return self.difference.verdict


@dataclass(frozen=True)
class Comparison:
    """The rows, those that changed first, then those that took longest; and all together.

    The verdict on all is not that on the sum: where a row that matters has changed, so has the whole; where all that
    matter are unchanged, it is too. `elapsed` is how long the runs lasted, judged by itself: of threads that work at
    the same time it may change while the sum does not. None if that is unknown.
    """

    measure: str
    runs_a: int
    runs_b: int
    rows: list[Compared]
    whole: Compared
    elapsed: Compared | None = None


def compare(
    a: Sequence[Run], b: Sequence[Run], measure: str = "total", tolerance: float = TOLERANCE
) -> Comparison:
    """Compare the runs of two sides by one of `MEASURES`. A row that a run does not have counts 0 there; one that
    has nothing of the measure in any is left out.

    Rows of less than a percent of the time are many and say little: they are judged among themselves, and do not
    make it harder to see a change in the others.
    """
    of = MEASURES[measure].of
    names = list(dict.fromkeys(name for run in (*a, *b) for name, figures in run.rows.items() if of(figures)))
    whole_a, whole_b = (fmean(run.total_ns for run in side) for side in (a, b))
    aside = {name for run in (*a, *b) for name in run.aside}

    shares = {name: max(_time_ns(a, name) / (whole_a or 1), _time_ns(b, name) / (whole_b or 1)) for name in names}
    matter = [name for name in names if shares[name] >= MATTERS_FROM and name not in aside]
    others = [name for name in names if name not in set(matter)]
    rows = [*_compared(matter, a, b, measure, tolerance, True), *_compared(others, a, b, measure, tolerance, False)]
    rows.sort(key=lambda row: (row.name in aside, row.verdict != CHANGED, -shares[row.name]))
    elapsed = _elapsed(a, b, tolerance)
    if measure == ELAPSED and elapsed:
        return Comparison(measure, len(a), len(b), rows, elapsed)
    return Comparison(measure, len(a), len(b), rows, _whole(a, b, measure, rows), elapsed)


def _time_ns(runs: Iterable[Run], name: Name) -> float:
    return fmean(run.rows[name].total_ns if name in run.rows else 0 for run in runs)


def _compared(
    names: Sequence[Name], a: Sequence[Run], b: Sequence[Run], measure: str, tolerance: float, matter: bool
) -> list[Compared]:
    of, grain = MEASURES[measure].of, MEASURES[measure].grain
    figures_a, figures_b = ([[run.rows.get(name, Figures()) for run in side] for name in names] for side in (a, b))
    numbers_a, numbers_b = ([[of(each) for each in row] for row in side] for side in (figures_a, figures_b))
    one_sided = [is_one_sided(one, other) for one, other in zip(figures_a, figures_b, strict=True)]
    found = differences(numbers_a, numbers_b, tolerance, grain, one_sided)
    return [
        Compared(name, each, _calls(one), _calls(other), matter)
        for name, each, one, other in zip(names, found, figures_a, figures_b, strict=True)
    ]


def is_one_sided(a: Sequence[Figures], b: Sequence[Figures]) -> bool:
    """Whether all runs of one side have a row, with equally many calls, and no run of the other side has it."""
    return _is_only_in(a, b) or _is_only_in(b, a)


def _is_only_in(there: Sequence[Figures], absent: Sequence[Figures]) -> bool:
    calls = {each.calls for each in there}
    return len(calls) == 1 and 0 not in calls and all(not each.calls and not each.total_ns for each in absent)


def _calls(figures: Sequence[Figures]) -> float:
    return fmean(each.calls for each in figures)


def _elapsed(a: Sequence[Run], b: Sequence[Run], tolerance: float) -> Compared | None:
    wholes_a, wholes_b = [run.whole for run in a], [run.whole for run in b]
    numbers_a, numbers_b = ([each.elapsed_ns for each in side] for side in (wholes_a, wholes_b))
    if 0 in (*numbers_a, *numbers_b):
        return None
    [found] = differences([numbers_a], [numbers_b], tolerance)
    return Compared(Name(ELAPSED), found, _calls(wholes_a), _calls(wholes_b), True)


def _whole(a: Sequence[Run], b: Sequence[Run], measure: str, rows: Sequence[Compared]) -> Compared:
    of = MEASURES[measure].of
    wholes_a, wholes_b = [run.whole for run in a], [run.whole for run in b]
    numbers_a, numbers_b = ([of(each) for each in side] for side in (wholes_a, wholes_b))
    [found] = differences([numbers_a], [numbers_b], grain=MEASURES[measure].grain)
    judged = Difference(found.a, found.b, found.low, found.high, found.chance, _verdict(rows, len(a), len(b)))
    return Compared(Name(ALL), judged, _calls(wholes_a), _calls(wholes_b), True)


def _verdict(rows: Sequence[Compared], runs_a: int, runs_b: int) -> str:
    verdicts = {row.verdict for row in rows if row.matters}
    if CHANGED in verdicts:
        return CHANGED
    if NOT_ENOUGH in verdicts or min(runs_a, runs_b) < RUNS_AT_LEAST:
        return NOT_ENOUGH
    return UNCHANGED


def named(runs: Sequence[Run], name: str) -> list[Figures] | None:
    """Of each run the figures of the rows called `name`, as one; None if no run has such a row. All of them are those
    that are not aside."""
    if name == ALL:
        return [run.whole for run in runs] if any(run.rows.keys() - run.aside for run in runs) else None
    found = [[figures for each, figures in run.rows.items() if name in each.parts] for run in runs]
    return [reduce(_both, each, Figures()) for each in found] if any(found) else None


def _both(one: Figures, other: Figures) -> Figures:
    one.add(other)
    return one
