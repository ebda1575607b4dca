"""Whether figures of several runs differ by more than chance: an interval for each difference, and a verdict.

Each run gives one figure per row, because calls within a run differ less than runs do. The method was chosen by
simulation (docs/comparing.md):

- Logarithms are compared, because people ask for ratios, and times are skewed, with a spread that grows with them. If a
  row is missing in some run, its plain figures are compared, and shown unless it is missing in all runs of a side.
- From ten runs on, the mean leaves out a tenth of the runs at either end (Yuen 1974): the machine may have been busy.
- Each side has its own variance (Welch 1947). The variance of a row is moved towards those of the other rows, the more
  the more alike they are (Smyth 2004), because three to twenty runs say little about a variance.
- With many rows, stronger evidence is needed (Holm 1979).

A row has `changed` if this test says so and the change is at least one percent. It is `unchanged` if the 95 % interval
of the ratio lies within the tolerance; no detected change is not enough. Otherwise there is not enough data.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, variance
from typing import NamedTuple

from interpose.analysis.comparison.distributions import (
    MOST_FREEDOM,
    digamma,
    student_beyond,
    student_bound,
    trigamma,
    trigamma_inverse,
)

CHANGED, UNCHANGED, NOT_ENOUGH = "changed", "unchanged", "not enough data"
RUNS_AT_LEAST = 3  # a side
TRIMMED = 0.1  # of the runs, at either end
SEEN_WRONGLY = 0.02  # how often a change may be reported in any of all rows although there is none
LEAST_CHANGE = 0.01  # smaller changes do not count, however certain
OUTSIDE = 0.05  # how often the ratio is outside of the interval
TOLERANCE = 0.05
ROWS_TO_LEAN_ON = 3
TRUST = 0.5  # how much of what the other rows tell is believed: how alike variances are is itself estimated

Figures = Sequence[float]


class Side(NamedTuple):
    """A row on one side: its mean, perhaps of logarithms, and the variance of a single run with its degrees of
    freedom; `runs` that are left of the trimming, and the mean as it is `shown`."""

    mean: float
    variance: float
    freedom: float
    runs: int
    shown: float = 0.0


@dataclass(frozen=True)
class Difference:
    """How a row differs: its typical figure on each side, and the interval of the ratio, if it can be calculated.

    `chance` is how often a difference as large would appear in any row if there were none. There is no ratio if a
    figure is 0.
    """

    a: float
    b: float
    low: float | None = None
    high: float | None = None
    chance: float | None = None
    verdict: str = NOT_ENOUGH

    @property
    def delta(self) -> float:
        return self.b - self.a

    @property
    def ratio(self) -> float | None:
        return self.b / self.a if self.a > 0 else None

    @property
    def is_sure(self) -> bool:
        """Whether it alone is more than chance, however many rows there are."""
        return self.low is not None and self.high is not None and not self.low <= 1 <= self.high


def differences(
    a: Sequence[Figures],
    b: Sequence[Figures],
    tolerance: float = TOLERANCE,
    grain: float = 0.0,
    one_sided: Sequence[bool] = (),
) -> list[Difference]:
    """The difference of each row: `a` and `b` have for each its figure in each run of a side; none is below 0.

    `grain` is how finely figures are known: two may differ by that part, and stand for the same. A row that is
    `one_sided` has changed, whatever the spread of its figures.
    """
    logs = [all(figure > 0 for figure in (*one, *other)) for one, other in zip(a, b, strict=True)]
    sides_a, sides_b = _sides(a, b, logs), _sides(b, a, logs)
    made = [_difference(*each, grain) for each in zip(sides_a, sides_b, logs, strict=True)]
    if min((len(each) for each in (*a, *b)), default=0) < RUNS_AT_LEAST:
        return [Difference(each.a, each.b) for each in made]
    chances = holm([1.0 if each.chance is None else each.chance for each in made])
    judged = [_judged(each, chance, tolerance) for each, chance in zip(made, chances, strict=True)]
    certain = zip(judged, one_sided or [False] * len(made), strict=True)
    return [Difference(each.a, each.b, chance=0.0, verdict=CHANGED) if is_sure else each for each, is_sure in certain]


def typical(row: Figures) -> float:
    """The typical figure of runs: their trimmed mean, of logarithms where there are."""
    return (_log_side(row) if all(figure > 0 for figure in row) else _side(row)).shown


def _sides(rows: Sequence[Figures], others: Sequence[Figures], logs: Sequence[bool]) -> list[Side]:
    """Each row on one side; the variances of rows with logarithms are moved towards each other. A row that the other
    side does not have at all is shown as its typical figure, as everywhere."""
    sides = [
        _log_side(row) if is_log else _side(row) if any(other) else _side(row)._replace(shown=typical(row))
        for row, other, is_log in zip(rows, others, logs, strict=True)
    ]
    told = [place for place, side in enumerate(sides) if logs[place] and side.variance > 0 and side.freedom > 0]
    for place, side in zip(told, leaning([sides[place] for place in told]), strict=True):
        sides[place] = side
    return sides


def _log_side(row: Figures) -> Side:
    side = _side([math.log(figure) for figure in row])
    return side._replace(shown=math.exp(side.mean) if min(row) < max(row) else row[0])


def _side(row: Figures) -> Side:
    """The trimmed mean, and Yuen's variance, which counts values that are cut off like their nearest remaining one."""
    ordered, cut = sorted(row), int(TRIMMED * len(row))
    kept = ordered[cut : len(ordered) - cut]
    if len(kept) < 2:
        mean = kept[0] if kept else 0.0
        return Side(mean, 0.0, 0.0, len(kept), mean)
    drawn_in = [*kept[:1] * cut, *kept, *kept[-1:] * cut]
    freedom = len(kept) - 1
    mean = fmean(kept)
    return Side(mean, variance(drawn_in) * (len(row) - 1) / freedom, freedom, len(kept), mean)


def leaning(sides: Sequence[Side]) -> list[Side]:
    """The sides with variances that lean on each other, as much as these are alike."""
    if len(sides) < ROWS_TO_LEAN_ON:
        return list(sides)
    freedom, common = _common(sides)
    return [
        side._replace(
            variance=(freedom * common + side.freedom * side.variance) / (freedom + side.freedom),
            freedom=freedom + side.freedom,
        )
        for side in sides
    ]


def _common(sides: Sequence[Side]) -> tuple[float, float]:
    """The prior for a row's variance: degrees of freedom and variance."""
    half = [side.freedom / 2 for side in sides]
    logs = [
        math.log(side.variance) - digamma(each) + math.log(each) for side, each in zip(sides, half, strict=True)
    ]
    spread = variance(logs) - fmean(map(trigamma, half))
    if spread <= trigamma(MOST_FREEDOM / 2):  # they do not differ more than they would by chance
        return TRUST * MOST_FREEDOM, math.exp(fmean(logs))
    known = trigamma_inverse(spread)
    return TRUST * 2 * known, math.exp(fmean(logs) + digamma(known) - math.log(known))


def _difference(a: Side, b: Side, is_log: bool, grain: float) -> Difference:
    """Before it is known how many others there are: `chance` is that of this row alone."""
    shown = a.shown, b.shown
    blur = math.log1p(grain) if is_log else grain * max(shown)
    one, other = (side.variance / side.runs if side.runs else 0.0 for side in (a, b))
    if one + other <= 0:
        same = abs(b.mean - a.mean) <= max(blur, 1e-12 * max(abs(a.mean), abs(b.mean)))
        ratio = shown[1] / shown[0] if shown[0] > 0 else 1.0 if same else None
        low, high = (None, None) if ratio is None else (ratio / (1 + grain), ratio * (1 + grain))
        return Difference(*shown, low, high, 1.0 if same else 0.0)
    error = math.sqrt(one + other)
    freedom = min((one + other) ** 2 / sum(v * v / s.freedom for v, s in ((one, a), (other, b)) if v), MOST_FREEDOM)
    reach = student_bound(OUTSIDE, freedom) * error + blur
    chance = student_beyond(max(abs(b.mean - a.mean) - blur, 0.0) / error, freedom)
    low, high = b.mean - a.mean - reach, b.mean - a.mean + reach
    if is_log:
        return Difference(*shown, _exp(low), _exp(high), chance)
    if a.mean > 0:
        return Difference(*shown, max(1 + low / a.mean, 0.0), 1 + high / a.mean, chance)
    return Difference(*shown, chance=chance)


def _exp(number: float) -> float:
    return math.exp(min(number, 700.0))


def _judged(found: Difference, chance: float, tolerance: float) -> Difference:
    verdict = NOT_ENOUGH
    is_small = found.ratio is not None and abs(found.ratio - 1) < LEAST_CHANGE
    if chance < SEEN_WRONGLY and not is_small:
        verdict = CHANGED
    elif found.low is not None and found.high is not None:
        is_within = 1 / (1 + tolerance) <= found.low and found.high <= 1 + tolerance
        verdict = UNCHANGED if is_within else NOT_ENOUGH
    return Difference(found.a, found.b, found.low, found.high, chance, verdict)


def holm(chances: Sequence[float]) -> list[float]:
    """The chances, corrected for the number of rows."""
    order = sorted(range(len(chances)), key=lambda place: chances[place])
    corrected, largest = [0.0] * len(chances), 0.0
    for rank, place in enumerate(order):
        largest = max(largest, min(chances[place] * (len(chances) - rank), 1.0))
        corrected[place] = largest
    return corrected
