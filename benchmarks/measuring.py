"""How benchmarks measure: everything that is compared takes turns in one run, and the result is a ratio."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeVar

Measured = TypeVar("Measured")


@dataclass(frozen=True)
class Effort:
    """How often everything has its turn: programs of many short rounds, and single starts."""

    turns: int
    starts: int


QUICK = Effort(turns=2, starts=10)
FULL = Effort(turns=7, starts=100)


@dataclass(frozen=True)
class Row:
    """One result: what was measured, its figure, the ratio to `base` (empty if there is none), and what it
    must reach."""

    what: str
    figure: str
    ratio: str = ""
    base: str = ""
    reach: str = ""


def take_turns(subjects: Mapping[str, Callable[[], Measured]], turns: int) -> dict[str, list[Measured]]:
    """What each subject gave in each turn: the first of all of them, then the second, and so on."""
    given: dict[str, list[Measured]] = {name: [] for name in subjects}
    for _ in range(turns):
        for name, measure in subjects.items():
            given[name].append(measure())
    return given


def times(ratio: float) -> str:
    """A ratio as it is written: `2.31 x`."""
    return f"{ratio:,.2f} x"
