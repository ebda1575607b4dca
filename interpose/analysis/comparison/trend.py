"""A figure of each run in the order of their time, and the periods between its changes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

from interpose.analysis.comparison.change_points import change_points
from interpose.analysis.comparison.comparison import named
from interpose.analysis.comparison.differences import Difference, differences, typical
from interpose.analysis.comparison.figures import ELAPSED, MEASURES, Figures, Run


@dataclass(frozen=True)
class Period:
    """Runs between two change points, from number `first` to before `end`, and their typical figure.

    `change` is how it differs from the period before, `chance` how often so clear a step would be there by chance.
    """

    first: int
    end: int
    figure: float
    change: Difference | None = None
    chance: float | None = None


@dataclass(frozen=True)
class Trend:
    """The runs, when each began on the calendar, and the measure and the name that their figures are of."""

    runs: Sequence[Run]
    times_ns: Sequence[int]
    measure: str
    name: str

    @property
    def title(self) -> str:
        """What the figures are: `total(os.read)`."""
        return self.measure if self.measure == ELAPSED else f"{self.measure}({self.name})"

    @cached_property
    def figures(self) -> list[float]:
        """The figure of each run; 0 if it has no such row."""
        return [MEASURES[self.measure].of(each) for each in self._rows]

    @property
    def calls(self) -> list[int]:
        """The calls of each run that its figure is of."""
        return [each.calls for each in self._rows]

    @cached_property
    def _rows(self) -> list[Figures]:
        return named(self.runs, self.name) or [Figures()] * len(self.runs)

    @cached_property
    def periods(self) -> list[Period]:
        """The periods, the oldest first: one where nothing has changed."""
        steps = change_points(self.figures)
        bounds = [0, *(step.first for step in steps), len(self.figures)]
        parts = [self.figures[first:end] for first, end in pairwise(bounds)]
        changes = [differences([one], [other])[0] for one, other in pairwise(parts)]
        return [
            Period(first, end, typical(part), change, chance)
            for (first, end), part, change, chance in zip(
                pairwise(bounds), parts, [None, *changes], [None, *(step.chance for step in steps)], strict=True
            )
        ]

    def period_of(self, number: int) -> Period:
        """The period of a run."""
        return next(period for period in self.periods if number < period.end)
