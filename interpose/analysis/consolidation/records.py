"""Consolidated records: like calls of a process, made inside like calls, combined into one record.

They form a tree, as the calls were nested. So grouping records into rows needs no events: the tree shows whether a call
was made inside another one of its row.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from typing import Any, TypeVar, cast

from interpose.analysis.consolidation.histogram import Histogram
from interpose.analysis.consolidation.sums import FIGURES, MOST, Sums
from interpose.analysis.transactions.tracking import BY_DETAIL
from interpose.experiments.format.consolidated import OTHER, Found

_BYTES = FIGURES.index("bytes")
Key = tuple[int, ...]
Group = TypeVar("Group", bound=Hashable)


class Record:
    """Calls that are alike, or transactions: their key, their figures, and the records `inner` of calls inside."""

    __slots__ = ("inner", "is_call", "key", "name", "outer", "sums")

    def __init__(self, outer: Record | None, key: Key, name: int, is_call: bool, sums: Sums) -> None:
        self.outer = outer
        self.key = key
        self.name = name
        self.is_call = is_call
        self.sums = sums
        self.inner: list[Record] = []

    @property
    def outer_call(self) -> Record | None:
        """The record of the calls that these were made inside, if any."""
        return self.outer if self.outer and self.outer.is_call else None

    @property
    def suspended_ns(self) -> int:
        """Of awaited calls, the time in which none of their steps and nothing awaited inside of them ran."""
        not_self_ns = self.sums.wall_ns - self.sums.self_wall_ns
        return max(not_self_ns - sum([each.sums.wall_ns for each in self.inner]), 0) if not_self_ns else 0

    @property
    def awaited_ns(self) -> int:
        """Of awaited calls, the time in which none of their steps ran, and that of what was awaited inside of them."""
        return min(sum([each.suspended_ns for each in walked([self])]), self.sums.wall_ns)

    @property
    def apart_ns(self) -> tuple[int, int]:
        """Wall and CPU time of recording that was measured within these calls and taken out of their self time. It is
        told from a suspension by its CPU time: a suspension has none."""
        not_self_ns = self.sums.cpu_ns - self.sums.self_cpu_ns
        cpu_ns = max(not_self_ns - sum([each.sums.cpu_ns for each in self.inner]), 0) if not_self_ns else 0
        return (max(self.suspended_ns, cpu_ns), cpu_ns) if cpu_ns else (0, 0)


class Records:
    """The records of a process by the fields `by`; `roots` are those that are inside of nothing."""

    def __init__(self, by: Sequence[str], found: Iterable[Found] = ()) -> None:
        self.by = tuple(by)
        self.roots: list[Record] = []
        self._walked: list[Record] | None = None  # all of them, as long as no more are taken in
        made: list[Record] = []
        place = self.by.index("intrinsic") if "intrinsic" in self.by else None
        for each in found:
            outer = made[each.outer] if each.outer >= 0 else None
            is_call = not each.name or place is None or each.key[place] != 0
            record = Record(outer, each.key, each.name, is_call, _sums(each))
            made.append(record)
            (outer.inner if outer else self.roots).append(record)

    def take_in(self, other: Records, plain: bool = False) -> None:
        """Have the records of `other` as well, which are by as many fields or more; like ones become one.

        Where `plain`, none is then under a transaction or has the name of one.
        """
        self._walked = None
        places = [other.by.index(name) for name in self.by]
        waiting: list[tuple[Record | None, list[Record]]] = [(None, other.roots)]
        while waiting:
            outer, given = waiting.pop()
            beside = outer.inner if outer else self.roots
            mine = {(each.key, each.name, each.is_call): each for each in beside}
            for record in given:
                if plain and not record.is_call:
                    waiting.append((outer, record.inner))
                    continue
                key, name = tuple([record.key[place] for place in places]), 0 if plain else record.name
                into = mine.get((key, name, record.is_call))
                if into is None:
                    into = mine[key, name, record.is_call] = Record(outer, key, name, record.is_call, Sums())
                    beside.append(into)
                into.sums.add(record.sums)
                if record.inner:
                    waiting.append((into, record.inner))

    def can_tell(self, by: Sequence[str], histograms: bool) -> bool:
        """Whether these, which are under transactions, tell all that events would by the fields `by`.

        Not where names of transactions were too many details: by fewer fields, more of them are kept.
        """
        names_are_kept = all(record.name != BY_DETAIL | OTHER for record in self.walk())
        has_histograms = all(record.sums.walls is not None for record in self.roots)
        return set(self.by).issuperset(by) and names_are_kept and (has_histograms or not histograms)

    def found(self) -> Iterator[Found]:
        """The records as they are kept: rows are in `bytes`, as in events."""
        numbers: dict[int, int] = {}
        for number, record in enumerate(self.walk()):
            numbers[id(record)] = number
            outer = numbers[id(record.outer)] if record.outer else -1
            figures = [min(getattr(record.sums, name), MOST) for name in FIGURES]
            figures[_BYTES] = min(record.sums.bytes + record.sums.rows, MOST)
            walls, cpus = record.sums.walls, record.sums.cpus
            counts = (walls.counts if walls else None, cpus.counts if cpus else None)
            yield Found(outer, record.key, record.name, tuple(figures), *counts)

    def walk(self) -> Iterator[Record]:
        """Every record, each behind the one around it."""
        if self._walked is None:
            self._walked = walked(self.roots)
        return iter(self._walked)

    def calls(self) -> Iterator[Record]:
        """Every record of calls, each behind the one around it."""
        return iter([record for record in self.walk() if record.is_call])

    def by_thread(self, statement: int = 0) -> dict[int, Sums]:
        """The figures of each thread's calls, if the thread is the first of the fields; line events are counted
        separately, if that is the number of their intrinsic."""
        threads: defaultdict[int, Sums] = defaultdict(Sums)
        place = self.by.index("intrinsic") if statement else 0
        for record in self.calls():
            sums = threads[record.key[0]]
            is_outermost = record.outer_call is None
            sums.add(record.sums, inclusive=is_outermost)
            is_statement = bool(statement) and record.key[place] == statement
            if is_statement:
                sums.statements += record.sums.calls
            if is_outermost:
                sums.top_cpu_ns += record.sums.cpu_ns
            else:
                sums.inner_calls += record.sums.calls
                sums.inner_statements += record.sums.calls if is_statement else 0
        return dict(threads)

    def sums(self) -> dict[Key, Sums]:
        """The figures of the calls by key; inclusive times without calls inside another call of the key."""
        found: dict[Key, Sums] = {}
        for record, key, is_first in grouped(self.roots, lambda record: record.key):
            found.setdefault(key, Sums()).add(record.sums, inclusive=is_first)
        return found


def walked(roots: Sequence[Record]) -> list[Record]:
    """Every record in these, each behind the one around it."""
    found, waiting = list[Record](), list(reversed(roots))
    while waiting:
        record = waiting.pop()
        found.append(record)
        if record.inner:
            waiting.extend(reversed(record.inner))
    return found


def grouped(roots: Sequence[Record], group_of: Callable[[Record], Group]) -> Iterator[tuple[Record, Group, bool]]:
    """Every record of calls with its group, and whether it is inside of no other record of that group."""
    around: dict[Group, int] = {}
    waiting: list[tuple[Record | None, Group | None]] = [(record, None) for record in reversed(roots)]
    while waiting:
        record, left = waiting.pop()
        if record is None:
            assert left is not None
            around[left] -= 1
            continue
        if record.is_call:
            group = group_of(record)
            number = around.get(group, 0)
            yield record, group, number == 0
            if record.inner:
                around[group] = number + 1
                waiting.append((None, group))
        if record.inner:
            waiting.extend([(each, None) for each in reversed(record.inner)])


def _sums(found: Found) -> Sums:
    sums = Sums(*cast(Any, found.figures))
    sums.walls = None if found.walls is None else Histogram(found.walls)
    sums.cpus = None if found.cpus is None else Histogram(found.cpus)
    return sums
