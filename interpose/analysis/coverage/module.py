"""The coverage of one module: which of its statements ran, line by line, and the shares."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field
from functools import cached_property
from itertools import groupby
from typing import NamedTuple

from interpose.analysis.coverage.conditions import EXIT, ways
from interpose.analysis.coverage.gathering import Made, Seen
from interpose.analysis.coverage.statements import NONE
from interpose.analysis.coverage.table import Table
from interpose.experiments.format.covered import Point

COVERED, PARTLY, MISSED = "covered", "partly", "missed"


class Share(NamedTuple):
    """A number out of a total."""

    part: int
    whole: int

    @property
    def percent(self) -> float | None:
        """The percentage; None if the total is 0."""
        return 100 * self.part / self.whole if self.whole else None

    def __add__(self, other: object) -> Share:
        assert isinstance(other, Share)
        return Share(self.part + other.part, self.whole + other.whole)


@dataclass
class Line:
    """A line of a source with statements: how many, how many of them ran, and its branches by the line that they lead
    to (or `EXIT`), taken or not. `count` is how often it was executed, 0 if unknown. `code_line` is the first line of
    the code that its branch to the exit ends, if it has one."""

    number: int
    statements: int = 0
    executed: int = 0
    branches: dict[int, bool] = field(default_factory=dict)
    count: int = 0
    code_line: int = 0

    @property
    def hits(self) -> int:
        """How often it was executed; 1 if it was, but nobody counted."""
        return max(self.count, 1) if self.executed else 0

    @property
    def status(self) -> str:
        """Whether it was covered, missed, or covered partly."""
        if not self.executed:
            return MISSED
        is_whole = self.executed == self.statements and all(self.branches.values())
        return COVERED if is_whole else PARTLY


@dataclass
class Module:
    """A module: its path and name, the table of its statements, and the numbers of those that ran, by context.

    Without a table, `why` gives the reason, and no share is known. `lines_by_context` are the lines where something
    ran. `jumps` are the branches by the statements that they lead from and to, taken or not. `counts` is how often
    lines were executed, if they were counted. `note` is a remark on the source; `made` is code generated for the
    module.
    """

    path: str
    name: str
    table: Table | None
    why: str = ""
    note: str = ""
    by_context: Mapping[str, Set[int]] = field(default_factory=dict)
    jumps: Mapping[tuple[int, int], bool] = field(default_factory=dict)
    lines_by_context: Mapping[str, Sequence[int]] = field(default_factory=dict)
    made: Made = field(default_factory=Made)
    has_run: bool = True
    counts: Mapping[int, int] = field(default_factory=dict)

    @cached_property
    def executed(self) -> Set[int]:
        """The statements that ran, in any context."""
        return set().union(*self.by_context.values())

    @cached_property
    def lines_seen(self) -> Set[int]:
        """The physical lines where something ran, in any context."""
        return set().union(*self.lines_by_context.values())

    def path_from(self, place: str) -> str:
        """Its path relative to the directory `place`; absolute if it is elsewhere."""
        return self.path.removeprefix(place.rstrip("/") + "/")

    @cached_property
    def own(self) -> Share:
        """The statements of the source that ran, of all of them."""
        counted = self.table.counted if self.table else ()
        return Share(sum(number in self.executed for number in counted), len(counted))

    @property
    def percent(self) -> float | None:
        """How much of the source's statements ran, of none all; None if they are not known."""
        return 100.0 if self.table and not self.own.whole else self.own.percent

    @property
    def generated(self) -> Share:
        """The executed lines of generated code, and all lines of its functions that ran."""
        return Share(len(self.made.executed), len(self.made.known))

    @property
    def with_generated(self) -> Share:
        """The same, code that was made at run time included."""
        return self.own + self.generated

    @property
    def branches(self) -> Share:
        """The branches that were taken, out of all."""
        return Share(sum(self.jumps.values()), len(self.jumps))

    @cached_property
    def lines(self) -> dict[int, Line]:
        """The lines with statements, by number, in the order of the source."""
        if not self.table:
            return {}
        found: dict[int, Line] = {}
        lines = self.table.statements.lines
        for number in self.table.counted:
            at = lines[number]
            line = found.setdefault(at, Line(at, count=self.counts.get(at, 0)))
            line.statements += 1
            line.executed += number in self.executed
        for (origin, target), was_gone in self.jumps.items():
            leads_to = EXIT if target == EXIT else lines[target]
            if line_of := found.get(lines[origin]):
                line_of.code_line = self.table.code_lines[origin] if target == EXIT else line_of.code_line
                line_of.branches[leads_to] = line_of.branches.get(leads_to, False) or was_gone
        return dict(sorted(found.items()))

    def count(self, status: str) -> int:
        """How many lines have that status."""
        return sum(line.status == status for line in self.lines.values())

    @cached_property
    def contexts(self) -> dict[int, list[str]]:
        """The contexts in which something on a line ran, by line."""
        found: dict[int, set[str]] = defaultdict(set)
        for context, numbers in self.by_context.items():
            for number in numbers:
                found[self.table.statements.lines[number] if self.table else 0].add(context)
        return {line: sorted(contexts) for line, contexts in found.items()}

    @property
    def missing(self) -> list[tuple[int, int]]:
        """Runs of missed lines, first and last: lines that have no statements, or are left out, interrupt none."""
        runs = groupby(self.lines.values(), key=lambda line: line.status == MISSED)
        missed = ([line.number for line in lines] for is_missed, lines in runs if is_missed)
        return [(numbers[0], numbers[-1]) for numbers in missed]


def module_of(
    path: str, table: Table | None, seen: Seen, with_branches: bool, *, why: str = "", note: str = ""
) -> Module:
    """The module of a file, from what was seen of it; with branches, also those of its code that never ran."""
    name = max(seen.modules, key=lambda each: (seen.modules[each], each), default="")
    lines = {context: sorted({point.line for point in points}) for context, points in seen.executed.items()}
    if table is None:
        return Module(path, name, None, why, note, lines_by_context=lines)
    mapped = _Mapped(table)
    by_context = {context: mapped.executed(points, seen.known) for context, points in seen.executed.items()}
    jumps = mapped.jumps(seen, with_branches)
    return Module(path, name, table, why, note, by_context, jumps, lines, counts=seen.counts)


def never_gone(table: Table) -> dict[tuple[int, int], bool]:
    """The ways out of conditions of a source of which nothing ran."""
    return _Mapped(table).jumps(None, True)


class _Mapped:
    """Finds the statements of places."""

    def __init__(self, table: Table) -> None:
        self._table = table
        self._found = table.statements
        self._counted = set(table.counted)

    def numbers(self, point: Point) -> Sequence[int]:
        """The statements of a place: one, or all that begin on its line if its column is unknown."""
        if point.column:
            number = self._found.at(point.line, point.column - 1)
            return () if number == NONE else (number,)
        return self._found.on(point.line)

    def executed(self, points: Set[Point], known: Set[Point]) -> set[int]:
        """The statements that ran. One that has no place of its own ran where the one before it on the line did."""
        ran = {number for point in points for number in self.numbers(point)}
        joined = self._found.joined & self._counted
        if joined:
            joined -= {number for point in known for number in self.numbers(point)}
        for number in sorted(joined):
            if number - 1 in ran:
                ran.add(number)
        return ran & self._counted

    def jumps(self, seen: Seen | None, with_branches: bool) -> dict[tuple[int, int], bool]:
        """The branches between statements, if a condition has several; conditions within one statement have none."""
        found = self._never_gone(seen) if with_branches else {}
        for (origin, target), was_gone in seen.jumps.items() if seen else ():
            begins, ends = self.numbers(origin)[:1], (EXIT,) if target is None else self.numbers(target)[:1]
            for begin, end in zip(begins, ends, strict=False):
                if begin in self._counted and (end == EXIT or end in self._counted) and end != begin:
                    found[begin, end] = found.get((begin, end), False) or was_gone
        exits = Counter(begin for begin, _ in found)
        taken = {begin for begin in exits if self._found.lines[begin] in self._table.no_branch}
        return {way: was_gone or way[0] in taken for way, was_gone in sorted(found.items()) if exits[way[0]] > 1}

    def _never_gone(self, seen: Seen | None) -> dict[tuple[int, int], bool]:
        """The ways in code that has no place."""
        known = seen.known if seen else ()
        never = self._counted - {number for point in known for number in self.numbers(point)}
        return {
            (begin, end): False
            for begin, end in ways(self._table)
            if begin in never and (end == EXIT or end in self._counted)
        }
