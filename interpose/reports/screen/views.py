"""The views of calls: functions, lines, objects, callers and called ones, the tree, threads; each as a table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from interpose.analysis.calls.calltree import TOTAL, Calls, Frame, Function, Node, Tree
from interpose.analysis.calls.figures import Vector, put
from interpose.analysis.calls.functions import (
    Callers,
    Row,
    by_function,
    by_line,
    by_object,
    callers_and_called,
    callers_of_all,
    functions_only,
    object_of,
)
from interpose.analysis.calls.groupings import thread_label
from interpose.experiments.model.process import Process
from interpose.reports.formats.short_paths import Places
from interpose.reports.formats.table import Table, table_of_cells
from interpose.reports.screen.metrics import ATTRIBUTED, EXCLUSIVE, INCLUSIVE, Column, Sort, cell, sorted_by

_Vectors = Mapping[str, Vector]
_Named = tuple[str, _Vectors]


@dataclass
class Shown:
    """How views are shown: the columns, what they are sorted by, how many rows at most (0: all)."""

    columns: Sequence[Column]
    sort: Sort
    limit: int = 0
    names: Names = field(default_factory=lambda: Names(()))
    part: str = ""

    def heading(self, what: str) -> str:
        """The title of a view."""
        return f"{what} sorted by metric: {self.sort.title}{self.part}"


class Names:
    """The names of functions and files as they are shown: short, and such that two are not taken for one."""

    def __init__(self, functions: Iterable[Function], cwd: str = "") -> None:
        there = set(functions)
        self._several = {name for name, number in Counter(each.name for each in there).items() if number > 1}
        self._places = Places([each.object for each in there if each.object], cwd)

    def file(self, path: str) -> str:
        """A file, or another object."""
        return self._places.file(path)

    def function(self, function: Function) -> str:
        """A function, with its file where several have the name."""
        if function.name in self._several and function.object:
            return f"{function.name} ({self.file(function.object)})"
        return function.name

    def frame(self, frame: Frame) -> str:
        """A line of a function."""
        if not frame.line:
            return self.function(frame.function)
        return f"{frame.function.name}, line {frame.line} in {self.file(frame.function.object)}"


def functions_table(tree: Tree, shown: Shown) -> Table:
    """Each function, exclusive and inclusive."""
    return _table(shown, "Functions", by_function(tree), shown.names.function)


def lines_table(tree: Tree, shown: Shown) -> Table:
    """Each line with recorded calls, and each called function."""
    return _table(shown, "Lines", by_line(tree), shown.names.frame)


def objects_table(tree: Tree, shown: Shown) -> Table:
    """Each file, and each module of called functions."""
    return _table(shown, "Objects", by_object(tree), shown.names.file)


def single_table(tree: Tree, shown: Shown, functions: Sequence[Function]) -> Table:
    """All metrics of some functions, one under the other."""
    rows = {row.what: row for row in by_function(tree)}
    total = rows[TOTAL].inclusive
    cells: list[list[str]] = []
    for function in functions:
        cells.append([shown.names.function(function), "", ""])
        for metric in tree.figures.made(total):
            pair = [Column(metric, flavour, ".") for flavour in (EXCLUSIVE, INCLUSIVE)]
            row = rows[function]
            values = [cell(column, vector, total) for column, vector in zip(pair, _both(row), strict=True)]
            cells.append([f"  {metric.title}", *values])
        cells.append([f"  Object: {shown.names.file(object_of(function))}", "", ""])
    return table_of_cells("", [("Function",), ("Exclusive",), ("Inclusive",)], cells, (False, True, True))


def callers_table(tree: Tree, shown: Shown, fragment: Sequence[Function] | None = None) -> Table:
    """Who called a function, or some that call each other, and whom it called; else of every function."""
    columns = _with_attributed(shown.columns)
    rows = by_function(tree)
    of = {row.what: row for row in rows}
    found = [callers_and_called(tree, fragment)] if fragment else _all_callers(tree, shown, rows)
    total = of[TOTAL].inclusive
    made: list[list[str]] = []
    for callers in found:
        if made:
            made.append([""] * len(columns))
        for mark, function, vectors in _around(callers, of, shown):
            made.append(_cells(columns, f"{mark}{shown.names.function(function)}", vectors, total))
    title = shown.heading("Callers and callees")
    return table_of_cells(title, [column.head for column in columns], made, _right(columns))


def calltree_table(tree: Tree, shown: Shown) -> Table:
    """Who called whom, from `<Total>` inward; the figures are those of the call path."""
    tree = functions_only(tree)
    total = tree.totals()
    columns = list(dict.fromkeys(map(_on_a_path, shown.columns)))
    heads = [column.head for column in columns]
    rows = (
        _cells(columns, f"{indent}{shown.names.function(node.frame.function)}", vectors, total[tree.root])
        for indent, node, vectors in _branches(tree, total, shown)
    )
    title = f"Call tree, attributed (with all that is below){shown.part}"
    return table_of_cells(title, heads, rows, _right(columns))


def threads_table(calls: Calls, shown: Shown) -> Table:
    """Each thread of each process."""
    return _wholes(calls, shown, "Threads", _thread)


def processes_table(calls: Calls, shown: Shown) -> Table:
    """Each process."""
    return _wholes(calls, shown, "Processes", lambda process, number: _pid(process))


def _wholes(calls: Calls, shown: Shown, what: str, label: Callable[[Process, int], str]) -> Table:
    figures = calls.tree.figures
    found: dict[str, Vector] = {}
    for (process, number), vector in calls.threads.items():
        put(found.setdefault(label(process, number), figures.nothing()), vector)
    total = figures.nothing()
    for vector in found.values():
        put(total, vector)
    rows = [Row(TOTAL.name, total, total), *(Row(name, vector, vector) for name, vector in found.items())]
    columns = [column for column in shown.columns if column.flavour in (EXCLUSIVE, "")]
    return _table(Shown(columns, shown.sort, shown.limit, shown.names, shown.part), what, rows, str)


def _thread(process: Process, number: int) -> str:
    return f"{_pid(process)}, thread {thread_label(process, number)}"


def _on_a_path(column: Column) -> Column:
    """On a single path, a function's inclusive figures are its attributed ones."""
    return column._replace(flavour=ATTRIBUTED) if column.flavour == INCLUSIVE else column


def _pid(process: Process) -> str:
    place = " ".join(part for part in (process.experiment, process.lineage) if part)
    return f"Process {process.log.pid}{f' ({place})' if place else ''}"


def _both(row: Row) -> tuple[Vector, Vector]:
    return row.exclusive, row.inclusive


def _vectors(row: Row) -> _Vectors:
    return {EXCLUSIVE: row.exclusive, INCLUSIVE: row.inclusive}


def _table(shown: Shown, what: str, rows: Sequence[Row], name_of: Callable[[Any], str]) -> Table:
    """The rows, that of `<Total>` first."""
    whole, *others = rows
    named: list[_Named] = [(name_of(row.what), _vectors(row)) for row in others]
    order = sorted_by(shown.sort, named)
    chosen = [(name_of(whole.what), _vectors(whole)), *(named[place] for place in order)]
    columns = [column for column in shown.columns if column.flavour != ATTRIBUTED]
    kept = chosen[: shown.limit + 1] if shown.limit else chosen
    cells = [_cells(columns, name, vectors, whole.inclusive) for name, vectors in kept]
    return table_of_cells(shown.heading(what), [column.head for column in columns], cells, _right(columns))


def _cells(columns: Sequence[Column], name: str, vectors: _Vectors, total: Vector) -> list[str]:
    return [
        name if column.metric is None else cell(column, vectors[column.flavour], total) for column in columns
    ]


def _right(columns: Sequence[Column]) -> list[bool]:
    return [column.metric is not None for column in columns]


def _with_attributed(columns: Sequence[Column]) -> list[Column]:
    """The columns with the attributed figures in front, of each metric that is there."""
    if any(column.flavour == ATTRIBUTED for column in columns):
        return list(columns)
    front = dict.fromkeys(column._replace(flavour=ATTRIBUTED) for column in columns if column.metric)
    return [*front, *columns]


def _all_callers(tree: Tree, shown: Shown, rows: Sequence[Row]) -> list[Callers]:
    of = callers_of_all(tree)
    whole, *others = rows
    order = sorted_by(shown.sort, [(shown.names.function(row.what), _vectors(row)) for row in others])
    functions = [whole.what, *(others[place].what for place in order)]
    return [of[function] for function in (functions[: shown.limit + 1] if shown.limit else functions) if function in of]


def _around(callers: Callers, of: Mapping[Function, Row], shown: Shown) -> Iterator[tuple[str, Function, _Vectors]]:
    """The callers, those that attribute least first; the functions themselves with a star; then the called ones."""
    above = _ordered(callers.callers, shown)
    for function in reversed(above):
        yield " ", function, {ATTRIBUTED: callers.callers[function], **_vectors(of[function])}
    for function in callers.fragment:
        is_last = function is callers.fragment[-1]
        attributed = callers.exclusive if is_last else [0] * len(callers.exclusive)
        yield "*", function, {ATTRIBUTED: attributed, **_vectors(of[function])}
    for function in _ordered(callers.called, shown):
        yield " ", function, {ATTRIBUTED: callers.called[function], **_vectors(of[function])}


def _ordered(attributed: Mapping[Function, Vector], shown: Shown) -> list[Function]:
    functions = list(attributed)
    named = [(shown.names.function(each), {ATTRIBUTED: attributed[each]}) for each in functions]
    return [functions[place] for place in sorted_by(shown.sort._replace(flavour=ATTRIBUTED), named)]


def _branches(
    tree: Tree, totals: Mapping[Node, Vector], shown: Shown
) -> Iterator[tuple[str, Node, _Vectors]]:
    """Each node with the drawing before its name, largest branches first; at most `limit` in total."""
    waiting: list[tuple[str, str, Node]] = [("", "", tree.root)]
    left = shown.limit or len(tree.nodes)
    while waiting and left:
        before, below, node = waiting.pop()
        left -= 1
        own = node.own or tree.figures.nothing()
        yield before, node, {EXCLUSIVE: own, INCLUSIVE: totals[node], ATTRIBUTED: totals[node]}
        inner = list(node.inner.values())
        named = [(shown.names.function(each.frame.function), {ATTRIBUTED: totals[each]}) for each in inner]
        order = sorted_by(shown.sort._replace(flavour=ATTRIBUTED), named)
        for number, place in enumerate(reversed(order)):
            corner, line = ("  +-", "    ") if number == 0 else ("  +-", "  | ")
            waiting.append((below + corner, below + line, inner[place]))
