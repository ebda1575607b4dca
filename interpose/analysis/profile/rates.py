"""What was counted between two samples of a thread, divided between the two places where it was seen.

The thread was in the first place before it was in the second, and on average in each for half of the time. Each place
counts at a rate of its own. The rates are those with which what was counted is most likely, if it comes by chance
(Poisson): found by expectation and maximisation, as Shepp and Vardi (1982) did. So a place that is seen for several
samples in a row explains what was counted as the thread came to it or left it.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

ROUNDS = 100
ENOUGH = 1e-4  # of a rate: then another round would hardly change it

Place = TypeVar("Place", bound=Hashable)


@dataclass
class Passage:
    """How long a thread was in the place that it left and in the one that it came to, and what each counter counted
    meanwhile."""

    left_ns: float = 0.0
    entered_ns: float = 0.0
    counted: Counter[int] = field(default_factory=Counter)


def divided(passages: Mapping[tuple[Place, Place], Passage], counter: int) -> dict[Place, int]:
    """How much a counter has in each place; together as much as in all passages, each from one place to another or the
    same."""
    rates = _rates(passages, counter)
    found: dict[Place, int] = defaultdict(int)
    for (left, entered), passage in passages.items():
        there = round(passage.counted[counter] * _share(passage, rates[left], rates[entered]))
        found[left] += there
        found[entered] += passage.counted[counter] - there
    return dict(found)


def _rates(passages: Mapping[tuple[Place, Place], Passage], counter: int) -> dict[Place, float]:
    times_ns: dict[Place, float] = defaultdict(float)
    for (left, entered), passage in passages.items():
        times_ns[left] += passage.left_ns
        times_ns[entered] += passage.entered_ns
    rates = dict.fromkeys(times_ns, 1.0)
    for _ in range(ROUNDS):
        counted: dict[Place, float] = defaultdict(float)
        for (left, entered), passage in passages.items():
            there = passage.counted[counter] * _share(passage, rates[left], rates[entered])
            counted[left] += there
            counted[entered] += passage.counted[counter] - there
        before, rates = rates, {place: counted[place] / (ns or 1.0) for place, ns in times_ns.items()}
        if all(abs(rate - before[place]) <= ENOUGH * rate for place, rate in rates.items()):
            break
    return rates


def _share(passage: Passage, left_rate: float, entered_rate: float) -> float:
    left, entered = passage.left_ns * left_rate, passage.entered_ns * entered_rate
    return left / (left + entered) if left + entered > 0 else 0.0
