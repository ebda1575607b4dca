"""How far a share that samples tell may be off."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import sqrt

NINETEEN_OF_TWENTY = 1.959964  # standard deviations of the normal distribution


@dataclass
class Count:
    """How much a counter has counted, and how far that may be off, 19 times of 20, if samples divide it; else 0."""

    count: int = 0
    margin: float = 0.0

    def add(self, other: Count) -> None:
        """Add what was counted elsewhere: chance errors of the two have nothing to do with each other."""
        self.count += other.count
        self.margin = sqrt(self.margin**2 + other.margin**2)


def sums_of(counts: Iterable[Mapping[str, Count]]) -> dict[str, Count]:
    """The sum of each counter, by name."""
    found: dict[str, Count] = {}
    for each in counts:
        for name, count in each.items():
            found.setdefault(name, Count()).add(count)
    return found


def margin(share: float, samples: float) -> float:
    """The larger distance from `share` to the ends of its 95 % interval, by E. B. Wilson, "Probable Inference, the Law
    of Succession, and Statistical Inference" (1927), for `samples` samples of the same weight."""
    if samples <= 0:
        return 1.0
    z2 = NINETEEN_OF_TWENTY**2 / samples
    centre = (share + z2 / 2) / (1 + z2)
    half = sqrt(z2 * share * (1 - share) + z2 * z2 / 4) / (1 + z2)
    return max(centre + half - share, share - centre + half)
