"""Where runs, in the order of their time, change: steps by least squares, tested by permutations.

The step is where one figure before it and one after it fit best. If nothing had changed, the order of the runs would be
random. So the runs are shuffled many times, to count how often two figures fit as well. That assumes nothing about the
distribution of figures. If there is a step, both sides are searched in the same way (docs/trend.md).

- Logarithms are used, as in a comparison, if all figures are above 0.
- An outlier beyond three standard deviations, estimated from the median deviation, counts as three: perhaps the machine
  was busy.
- A period has three runs or more. The shuffling has a fixed seed: the same runs give the same answer.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from itertools import accumulate, islice, pairwise
from statistics import median
from typing import NamedTuple

from interpose.analysis.comparison.differences import LEAST_CHANGE, RUNS_AT_LEAST, SEEN_WRONGLY, typical

SHUFFLES, SHUFFLES_AT_LEAST = 4999, 999
RUNS_AT_LEAST_IN_ALL = 9  # of fewer no order is so rare
_SHUFFLED_AT_MOST = 2_000_000  # figures
_FAR_OFF = 3 * 1.4826  # of the median deviation: three standard deviations, were they normal
_SEED = 22


class Step(NamedTuple):
    """A change point: the number of the first run of a new period, from 0, and how often so clear a step would be there
    by chance."""

    first: int
    chance: float


def change_points(figures: Sequence[float]) -> list[Step]:
    """The steps in figures of runs in the order of their time, none of them below 0."""
    values = _drawn_in([math.log(each) for each in figures] if all(each > 0 for each in figures) else figures)
    found = sorted(_steps(figures, values, 0, len(values)))
    bounds = [0, *(step.first for step in found), len(values)]
    places = [_best(values[before:after])[0] + before for (before, _), (_, after) in pairwise(pairwise(bounds))]
    return [step._replace(first=place) for step, place in zip(found, places, strict=True)]


def _steps(figures: Sequence[float], values: Sequence[float], first: int, end: int) -> list[Step]:
    """The steps between two runs."""
    if end - first < RUNS_AT_LEAST_IN_ALL:
        return []
    place, size = _best(values[first:end])
    place += first
    chance = _chance(values[first:end], size)
    if chance >= SEEN_WRONGLY or _is_small(typical(figures[first:place]), typical(figures[place:end])):
        return []
    return [Step(place, chance), *_steps(figures, values, first, place), *_steps(figures, values, place, end)]


def _is_small(before: float, after: float) -> bool:
    return abs(after - before) < LEAST_CHANGE * before


def _drawn_in(values: Sequence[float]) -> list[float]:
    """The values, those that are far off drawn in."""
    middle = median(values) if values else 0.0
    reach = _FAR_OFF * median([abs(each - middle) for each in values]) if values else 0.0
    return [min(max(each, middle - reach), middle + reach) for each in values] if reach else list(values)


def _best(values: Sequence[float]) -> tuple[int, float]:
    """The split where two figures fit best, and how much better than one: the share of the squares that they explain.
    """
    gains = _gains(_centred(values), _weights(len(values)))
    size = max(gains)
    return gains.index(size) + RUNS_AT_LEAST, size


def _centred(values: Sequence[float]) -> list[float]:
    mean = sum(values) / len(values)
    return [each - mean for each in values]


def _weights(number: int) -> list[float]:
    """By what the square of the sum before each split of so many values is multiplied to be the squares explained."""
    return [number / (place * (number - place)) for place in range(RUNS_AT_LEAST, number - RUNS_AT_LEAST + 1)]


def _gains(centred: Sequence[float], weights: Sequence[float]) -> list[float]:
    """The squares that each split explains, the earliest split first."""
    sums = islice(accumulate(centred), RUNS_AT_LEAST - 1, None)
    return [before * before * weight for before, weight in zip(sums, weights, strict=False)]


def _chance(values: Sequence[float], size: float) -> float:
    """How often two figures fit shuffled values as well; shuffling stops early if that is often."""
    shuffles = min(SHUFFLES, max(SHUFFLES_AT_LEAST, _SHUFFLED_AT_MOST // len(values)))
    shuffled, weights, draw = _centred(values), _weights(len(values)), random.Random(_SEED).random
    enough = size * (1 - 1e-9)
    as_well = 1  # the order that they have
    for done in range(1, shuffles + 1):
        shuffled.sort(key=lambda _: draw())  # random.shuffle draws in Python, which takes longer
        as_well += max(_gains(shuffled, weights)) >= enough
        if as_well > 2 * SEEN_WRONGLY * (shuffles + 1):
            return as_well / (done + 1)
    return as_well / (shuffles + 1)
