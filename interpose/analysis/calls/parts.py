"""Rows before they are sorted and closed: the partial result of one experiment or of several, which can be merged.

Every figure of a part is a sum, a minimum, a maximum or a histogram. So merging parts in any order gives what reading
all experiments at once gives, to the nanosecond. Only margins of error, which are not whole numbers, may differ in
their last digits.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from interpose.analysis.calls.account import NOTHING, Share
from interpose.analysis.calls.rows import NOT_KEPT, Row
from interpose.analysis.consolidation.sums import Sums
from interpose.analysis.profile.balance import Code
from interpose.analysis.profile.margin import sums_of
from interpose.analysis.transactions.estimate import Estimate, Margin, Population
from interpose.experiments.model.stacks import Site

Labels = tuple[tuple[str, str], ...]


@dataclass
class CodePart:
    """The rows of sampled functions or lines, and what is taken from other rows because these have it.

    `lines` has the CPU time of each line, if rows are of functions. `spent_wall_ns` and `spent_cpu_ns` are the time
    between calls that the rows divide; `processes` is the number of processes that were sampled.
    """

    rows: list[Row] = field(default_factory=list)
    lines: dict[Site, int] = field(default_factory=dict)
    spent_wall_ns: int = 0
    spent_cpu_ns: int = 0
    processes: int = 0


@dataclass
class Part:
    """The rows of calls of one experiment or of several, in no order.

    `shares` divide the time of threads by the labels of the rows that close the table; without such labels there is one
    share. `passed` are calls of the kind `sync` that did not wait, `counted` the untimed calls of each kind. `counts`
    is what was counted beside time, for the row that is like each of these, or in rows of their own; `counters` are
    those that were read. `is_part` says that only some calls were selected: these have no closing rows.
    """

    rows: list[Row] = field(default_factory=list)
    shares: dict[Labels, Share] = field(default_factory=dict)
    passed: int = 0
    counted: Counter[str] = field(default_factory=Counter)
    is_part: bool = False
    estimate: Estimate | None = None
    code: CodePart = field(default_factory=CodePart)
    counts: list[Row] = field(default_factory=list)
    counters: tuple[str, ...] = ()

    @property
    def total(self) -> Share:
        """All threads; of selected calls, what these took."""
        if not self.is_part:
            return sum(self.shares.values(), NOTHING)
        wall_ns = sum(row.sums.self_wall_ns for row in self.rows)
        return Share(wall_ns, sum(row.sums.self_cpu_ns for row in self.rows), 0, 0, 0, 0)


def merged(parts: Iterable[Part]) -> Part:
    """One part of all; those given do not change."""
    made = Part()
    rows, code, counts = _Rows(), _Rows(), _Rows()
    for part in parts:
        rows.add(part.rows)
        code.add(part.code.rows)
        counts.add(part.counts)
        for labels, share in part.shares.items():
            made.shares[labels] = made.shares.get(labels, NOTHING) + share
        made.passed += part.passed
        made.counted.update(part.counted)
        made.is_part |= part.is_part
        made.counters = tuple(dict.fromkeys((*made.counters, *part.counters)))
        made.estimate = _estimate(made.estimate, part.estimate)
        _add_code(made.code, part.code)
    made.rows, made.code.rows, made.counts = rows.made, code.made, counts.made
    return made


def _add_code(into: CodePart, other: CodePart) -> None:
    for site, cpu_ns in other.lines.items():
        into.lines[site] = into.lines.get(site, 0) + cpu_ns
    into.spent_wall_ns += other.spent_wall_ns
    into.spent_cpu_ns += other.spent_cpu_ns
    into.processes += other.processes


class _Rows:
    """Rows, of which those alike become one."""

    def __init__(self) -> None:
        self._of: dict[tuple[object, ...], Row] = {}

    @property
    def made(self) -> list[Row]:
        """The rows, each once."""
        return list(self._of.values())

    def add(self, rows: Iterable[Row]) -> None:
        """Add what these rows have."""
        for row in rows:
            into = self._of.get(row.likeness)
            if into is None:
                into = self._of[row.likeness] = _empty(row)
            _add(into, row)


def _empty(row: Row) -> Row:
    """A row like that one, without figures."""
    code = Code() if row.code else None
    return replace(row, sums=Sums(), passed=0, counted=0, margin=None, code=code, tasks={}, counts={})


def _add(into: Row, row: Row) -> None:
    into.sums.add(row.sums)
    into.passed += row.passed
    into.counted += row.counted
    into.margin = _margin(into.margin, row.margin)
    into.counts = sums_of((into.counts, row.counts))
    if into.code and row.code:
        into.code.add(row.code)
    for task, cpu_ns in row.tasks.items():
        into.tasks[task] = into.tasks.get(task, 0) + cpu_ns


def _margin(mine: Margin | None, other: Margin | None) -> Margin | None:
    """The margin of a sum; experiments were sampled by themselves."""
    if mine is None or other is None:
        return mine or other
    return Margin(math.hypot(mine.calls, other.calls), math.hypot(mine.self_wall_ns, other.self_wall_ns))


def _estimate(mine: Estimate | None, other: Estimate | None) -> Estimate | None:
    if mine is None or other is None:
        return mine or other
    whole = Population()
    whole.add(mine.population)
    whole.add(other.population)
    margins = dict(mine.margins)
    for what, margin in other.margins.items():
        margins[what] = _margin(margins.get(what), margin) or margin
    first = min((mine, other), key=lambda each: (each.one_in, each.seed))
    started = mine.started[0] + other.started[0], mine.started[1] + other.started[1]
    return Estimate(whole, first.one_in, first.seed, mine.is_scaled and other.is_scaled, margins, started)


def not_kept_row(wall_ns: int, cpu_ns: int) -> Row:
    """The row of what transactions took of which nothing else is known."""
    sums = Sums(wall_ns=wall_ns, cpu_ns=cpu_ns, self_wall_ns=wall_ns, self_cpu_ns=cpu_ns)
    return Row(NOT_KEPT, None, sums=sums, is_of_calls=False)
