"""Where runs, in the order of their time, change: steps by least squares, tested by permutations.

Two figures take turns: they change once, or change and go back, and if there are few runs, perhaps a third time. The
steps are where they fit best. If nothing had changed, the order of the runs would be random. So the runs are shuffled
many times, to count how often two figures fit as well. That assumes nothing about the distribution of figures. If there
are steps, the periods between them are searched in the same way (docs/trend.md).

A period between two others is found as in circular binary segmentation (Olshen, Venkatraman and others, Biostatistics
5, 2004). All is one test: the best fit of the runs against the best ones of the shuffled runs.

- Logarithms are used, as in a comparison, if all figures are above 0.
- An outlier beyond three standard deviations, estimated from the median deviation, counts as three: perhaps the machine
  was busy.
- A period has three runs or more. The shuffling has a fixed seed: the same runs give the same answer.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Sequence
from itertools import accumulate, chain, combinations, islice, pairwise
from operator import mul, sub
from statistics import median
from typing import NamedTuple

from interpose.analysis.comparison.differences import LEAST_CHANGE, RUNS_AT_LEAST, SEEN_WRONGLY, typical

SHUFFLES, SHUFFLES_AT_LEAST = 4999, 999
RUNS_AT_LEAST_IN_ALL = 9  # of fewer no order is so rare
THRICE_UP_TO = 16  # runs; in more, there are too many ways to change thrice
_OF_MORE = 0.9  # what each further step leaves of a fit's size: there are more ways to change twice than once
_ALL_OF = 1000  # length times number, up to which each period between two others is tried
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
    places = _put_right(values, [step.first for step in found])
    return [step._replace(first=place) for step, place in zip(found, places, strict=True)]


def _steps(figures: Sequence[float], values: Sequence[float], first: int, end: int) -> list[Step]:
    """The steps between two runs."""
    if end - first < RUNS_AT_LEAST_IN_ALL:
        return []
    fits = Fits(end - first)
    places, size = fits.best(_centred(values[first:end]))
    chance = _chance(values[first:end], fits, size)
    bounds = [first, *(first + place for place in _put_right(values[first:end], places)), end]
    parts = [figures[before:after] for before, after in pairwise(bounds)]
    if chance >= SEEN_WRONGLY or _is_small(*(typical([*chain(*parts[each::2])]) for each in (0, 1))):
        return []
    inner = [_steps(figures, values, before, after) for before, after in pairwise(bounds)]
    return [*(Step(place, chance) for place in bounds[1:-1]), *chain(*inner)]


def _is_small(before: float, after: float) -> bool:
    return abs(after - before) < LEAST_CHANGE * before


def _drawn_in(values: Sequence[float]) -> list[float]:
    """The values, those that are far off drawn in."""
    middle = median(values) if values else 0.0
    reach = _FAR_OFF * median([abs(each - middle) for each in values]) if values else 0.0
    return [min(max(each, middle - reach), middle + reach) for each in values] if reach else list(values)


def _centred(values: Sequence[float]) -> list[float]:
    mean = sum(values) / len(values)
    return [each - mean for each in values]


def _best_split(values: Sequence[float]) -> int:
    """The place where one figure before it and one after it fit best."""
    fits = Fits(len(values))
    gains = fits.of_splits(fits.sums(_centred(values)))
    return gains.index(max(gains)) + RUNS_AT_LEAST


def _put_right(values: Sequence[float], places: Sequence[int]) -> list[int]:
    """The places, each where one figure before it and one after it fit best, as far as the places beside it."""
    bounds = [0, *places, len(values)]
    for number in range(1, len(bounds) - 1):
        before, after = bounds[number - 1], bounds[number + 1]
        bounds[number] = before + _best_split(values[before:after])
    return bounds[1:-1]


class Fits:
    """How two figures that take turns fit so many values: the squares that they explain, less for each further step.

    It works with the sums of the centred values before each place where a period can end. The squares explained are the
    square of the sum of one figure's values, by a weight that follows from how many they are.
    """

    def __init__(self, number: int) -> None:
        self._number = number
        self._splits = [self._weight(place) for place in range(RUNS_AT_LEAST, number - RUNS_AT_LEAST + 1)]
        self._between = sorted(self._periods_between(), reverse=True)
        self._thrice = list(self._in_turns()) if number <= THRICE_UP_TO else []

    def _weight(self, length: int) -> float:
        return self._number / (length * (self._number - length))

    def _periods_between(self) -> Iterator[tuple[float, int, int]]:
        """The weight and length of a period between two others, and how far from each other those begin that are tried.

        Of many runs not all are: a step that is a little off is put right afterwards.
        """
        length = RUNS_AT_LEAST
        while length <= self._number - 2 * RUNS_AT_LEAST:
            shorter = min(length, self._number - length)
            stride = max(1, min(shorter // 4, shorter * self._number // _ALL_OF))
            yield _OF_MORE * self._weight(length), length, stride
            length += stride

    def _in_turns(self) -> Iterator[tuple[float, int, int, int]]:
        """The weights and places of three steps, the places counted from the first possible one."""
        places = len(self._splits)
        for first, second, third in combinations(range(places), 3):
            if min(second - first, third - second) >= RUNS_AT_LEAST:
                length = second - first + self._number - RUNS_AT_LEAST - third
                yield _OF_MORE**2 * self._weight(length), first, second, third

    def sums(self, centred: Sequence[float]) -> list[float]:
        """The sums before each place."""
        return list(islice(accumulate(centred), RUNS_AT_LEAST - 1, self._number - RUNS_AT_LEAST))

    def of_splits(self, sums: Sequence[float]) -> list[float]:
        """The size of each split, the earliest first."""
        return list(map(mul, map(mul, sums, sums), self._splits))

    def best(self, centred: Sequence[float]) -> tuple[list[int], float]:
        """The places of the best fit, fewer before more, and its size."""
        sums = self.sums(centred)
        gains = self.of_splits(sums)
        size = max(gains)
        places = [gains.index(size)]
        for weight, length, stride in self._between:
            gains = [weight * each * each for each in map(sub, sums[length::stride], sums[::stride])]
            if max(gains) > size:
                size = max(gains)
                places = [gains.index(size) * stride, gains.index(size) * stride + length]
        for weight, *three in self._thrice:
            gain = weight * _sum_in_turns(sums, *three) ** 2
            if gain > size:
                size, places = gain, three
        return [each + RUNS_AT_LEAST for each in places], size

    def reaches(self, centred: Sequence[float], enough: float) -> bool:
        """Whether any fit is of that size."""
        sums = self.sums(centred)
        return (
            max(self.of_splits(sums)) >= enough
            or self._reaches_between(sums, enough)
            or any(weight * _sum_in_turns(sums, *three) ** 2 >= enough for weight, *three in self._thrice)
        )

    def _reaches_between(self, sums: Sequence[float], enough: float) -> bool:
        reach = (max(sums) - min(sums)) ** 2
        for weight, length, stride in self._between:
            if weight * reach < enough:  # so are all others
                return False
            apart = list(map(sub, sums[length::stride], sums[::stride]))
            if weight * max(max(apart), -min(apart)) ** 2 >= enough:
                return True
        return False


def _sum_in_turns(sums: Sequence[float], first: int, second: int, third: int) -> float:
    """The sum of the second and the fourth period; the sum of all is 0."""
    return sums[second] - sums[first] - sums[third]


def _chance(values: Sequence[float], fits: Fits, size: float) -> float:
    """How often two figures fit shuffled values as well; shuffling stops early if that is often."""
    shuffles = min(SHUFFLES, max(SHUFFLES_AT_LEAST, _SHUFFLED_AT_MOST // len(values)))
    shuffled, draw = _centred(values), random.Random(_SEED).random
    enough = size * (1 - 1e-9)
    as_well = 1  # the order that they have
    for done in range(1, shuffles + 1):
        shuffled.sort(key=lambda _: draw())  # random.shuffle draws in Python, which takes longer
        as_well += fits.reaches(shuffled, enough)
        if as_well > 2 * SEEN_WRONGLY * (shuffles + 1):
            return as_well / (done + 1)
    return as_well / (shuffles + 1)
