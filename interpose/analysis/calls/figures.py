"""Figures of calls as vectors that can be added: times and counts, in total and for each kind.

A vector belongs to a `Figures`, which defines its positions. All figures are sums, so several vectors add up to the
figures of all their calls, and columns add up.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from operator import add
from typing import NamedTuple, TypeVar

from interpose.analysis.consolidation.sums import Sums
from interpose.analysis.profile.counts import counters_in
from interpose.experiments.model.experiment import Experiment
from interpose.experiments.model.recorded_files import UNKNOWN
from interpose.kinds import IDLE, KINDS

TIME, COUNT, SIZE = "time", "count", "size"
Vector = list[int]
Key = TypeVar("Key", bound=Hashable)


class Metric(NamedTuple):
    """Something measured: its name in commands, its title in tables, its unit, and its place in a vector."""

    name: str
    title: str
    unit: str
    place: int


_BASE = (
    ("wall", "Wall", TIME),
    ("cpu", "CPU", TIME),
    ("wait", "Wait", TIME),
    ("calls", "Calls", COUNT),
    ("errors", "Errors", COUNT),
    ("bytes", "Bytes", SIZE),
    ("rows", "Rows", COUNT),
)

_UNKNOWN_KIND = "unknown"


@dataclass(frozen=True)
class Figures:
    """The figures for calls of these `kinds`, and for these counters."""

    kinds: tuple[str, ...]
    counters: tuple[str, ...] = ()

    def metrics(self) -> dict[str, Metric]:
        """All metrics by name: those of all calls, then time and number of the calls of each kind (`db`, `dbn`), then
        what was counted."""
        found = [Metric(name, title, unit, place) for place, (name, title, unit) in enumerate(_BASE)]
        for number, kind in enumerate(self.kinds):
            name, place = _UNKNOWN_KIND if kind == UNKNOWN else kind, len(_BASE) + 2 * number
            found.append(Metric(name, name, TIME, place))
            found.append(Metric(f"{name}n", f"{name} calls", COUNT, place + 1))
        titles = [name.replace("_", " ").capitalize() for name in self.counters]
        found += [
            Metric(name, title, COUNT, self._end_of_kinds + number)
            for number, (name, title) in enumerate(zip(self.counters, titles, strict=True))
        ]
        return {metric.name: metric for metric in found}

    def of_kind(self, vector: Sequence[int], kind: str) -> int:
        """The time of the calls of one kind."""
        return vector[len(_BASE) + 2 * self.kinds.index(kind)]

    def kind_of(self, vector: Sequence[int]) -> str:
        """The kind with the most calls; empty if there are none."""
        counts = list(vector[len(_BASE) + 1 : self._end_of_kinds : 2])
        return self.kinds[counts.index(max(counts))] if any(counts) else ""

    def made(self, vector: Sequence[int]) -> list[Metric]:
        """The metrics of all calls, and of the kinds those of which there is anything in `vector`."""
        return [each for each in self.metrics().values() if each.place < len(_BASE) or vector[each.place]]

    def nothing(self) -> Vector:
        """The vector of no calls."""
        return [0] * (self._end_of_kinds + len(self.counters))

    @property
    def _end_of_kinds(self) -> int:
        return len(_BASE) + 2 * len(self.kinds)

    def of_counter(self, name: str, count: int) -> Vector:
        """The vector of what a counter has counted."""
        found = self.nothing()
        found[self._end_of_kinds + self.counters.index(name)] = count
        return found

    def of_times(self, wall_ns: int, cpu_ns: int) -> Vector:
        """The vector of time that is in no call."""
        found = self.nothing()
        found[:3] = wall_ns, cpu_ns, max(wall_ns - cpu_ns, 0)
        return found

    def of_calls(self, kind: str, sums: Sums) -> Vector:
        """The vector of calls of one kind, by what they took themselves."""
        found = self.of_times(sums.self_wall_ns, sums.self_cpu_ns)
        found[3 : len(_BASE)] = sums.calls, sums.errors, sums.bytes, sums.rows
        place = len(_BASE) + 2 * self.kinds.index(kind if kind in self.kinds else UNKNOWN)
        found[place : place + 2] = sums.self_wall_ns, sums.calls
        return found


def figures_of(experiment: Experiment) -> Figures:
    """The figures for `experiment`, with the kinds of its intrinsics in the usual order, and its counters."""
    there = {each.kind for process in experiment.processes for each in process.numbered_intrinsics.values()}
    return Figures((*in_usual_order(there - {UNKNOWN}), UNKNOWN), counters_in(experiment))


def in_usual_order(kinds: AbstractSet[str]) -> list[str]:
    """Kinds in the order in which tables have them; the unknown one last."""
    known = [kind for kind in (*KINDS, IDLE) if kind in kinds]
    return [*known, *sorted(kinds - {*known, UNKNOWN}), *(kinds & {UNKNOWN})]


def put(into: Vector, more: Sequence[int]) -> None:
    """Add the vector `more` to `into`."""
    into[:] = map(add, into, more)


def put_at(into: dict[Key, Vector], key: Key, more: Vector) -> None:
    """Add the vector `more` to the one that `into` has at `key`."""
    put(into.setdefault(key, [0] * len(more)), more)


def put_all_at(into: dict[Key, Vector], more: Mapping[Key, Vector]) -> None:
    """Add each vector of `more` to the one that `into` has there."""
    for key, figures in more.items():
        put_at(into, key, figures)
