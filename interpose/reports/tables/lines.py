"""Tables of line trace: a row for each line or function, then the time outside and the cost of recording."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from interpose.analysis.calls.rows import OVERHEAD
from interpose.analysis.lines.line_rows import Figures, FunctionTotal, Line, Place, Trace
from interpose.reports.formats.short_paths import Places
from interpose.reports.formats.table import Column, Table, Values, clean
from interpose.reports.formats.units import percent, scale_for

SORTS = ("cpu", "wall", "inclusive", "executed", "entered", "line")
NUMBERS = ("executed", "entered", "self_cpu_ns", "self_wall_ns", "user_ns", "system_ns", "cpu_ns", "wall_ns")
OUTSIDE, OWN, RUN, CHILDREN = "outside", OVERHEAD, "*RUN", "*CHILDREN"


@dataclass
class LineRow:
    """A row of a line, of a function (then `line` is 0), or with the `name` of something else (then `place` is None).
    """

    place: Place | None
    line: int
    figures: Figures
    loops: dict[int, int] = field(default_factory=dict)
    labels: dict[str, str] = field(default_factory=dict)
    name: str = ""
    is_counted: bool = True


def line_rows(lines: Sequence[Line], sort: str, limit: int | None) -> list[LineRow]:
    """The rows of lines that ran, or took time."""
    rows = [LineRow(each.place, each.line, each.figures, each.loops, each.labels) for each in lines if _ran(each)]
    return _arranged(rows, sort, limit)


def function_rows(functions: Sequence[FunctionTotal], sort: str, limit: int | None) -> list[LineRow]:
    """The rows of functions."""
    return _arranged([LineRow(each.place, 0, each.figures, labels=each.labels) for each in functions], sort, limit)


def closing_rows(trace: Trace) -> list[LineRow]:
    """Time without a line: outside of traced functions, the cost of recording, and the process's CPU time while it was
    traced."""
    outside, own = Figures(), Figures()
    for thread in trace.threads:
        outside.add(thread.outside)
        own.add_self(thread.own_ns, thread.own_ns, None)
    rows = [LineRow(None, 0, outside, name=OUTSIDE), LineRow(None, 0, own, name=OWN)]
    for name, run in ((RUN, trace.run), (CHILDREN, trace.children)):
        figures = Figures(self_cpu_ns=run.user_ns + run.system_ns, system_ns=run.system_ns)
        rows.append(LineRow(None, 0, figures, name=name, is_counted=False))
    return rows


def lines_table(rows: Sequence[LineRow], apart: Sequence[str], cwd: str, is_estimated: bool = False) -> Table:
    """The table of `rows`, with columns for the labels in `apart`; estimated times are marked."""
    names = ("file", "module", "function", "line", *apart, *NUMBERS, "loops")
    places = Places([row.place.file for row in rows if row.place], cwd)
    columns = [*_name_columns(rows, places, apart), *_number_columns(rows, is_estimated)]
    return Table(names, _values, columns, rows, shown=places.shown)


def loops_shown(loops: dict[int, int]) -> str:
    """Passes by level: `5`, then `5 20` where one loop stands in another on the same line."""
    return " ".join(f"{loops[level]:,}" for level in sorted(loops))


def _ran(line: Line) -> bool:
    figures = line.figures
    return bool(figures.executed or figures.entered or any(line.loops.values()))


def _arranged(rows: list[LineRow], sort: str, limit: int | None) -> list[LineRow]:
    keys: dict[str, Callable[[LineRow], tuple[object, ...]]] = {
        "cpu": lambda row: (-row.figures.self_cpu_ns,),
        "wall": lambda row: (-row.figures.self_wall_ns,),
        "inclusive": lambda row: (-row.figures.wall_ns,),
        "executed": lambda row: (-row.figures.executed,),
        "entered": lambda row: (-row.figures.entered,),
        "line": lambda row: (row.place.file, row.place.first_line, row.place.function, row.line) if row.place else (),
    }
    return sorted(rows, key=keys[sort])[:limit]


def _values(row: LineRow) -> Values:
    place = row.place
    named = {
        "file": place.file if place else None,
        "module": place.module if place else None,
        "function": place.function if place else row.name,
        "line": row.line or None,
        **row.labels,
    }
    figures = {name: getattr(row.figures, name) for name in NUMBERS}
    if not row.is_counted:
        figures |= dict.fromkeys(("executed", "entered", "self_wall_ns", "cpu_ns", "wall_ns"))
    return named | figures | {"loops": loops_shown(row.loops) or None}


def _in_several_modules(rows: Sequence[LineRow]) -> set[tuple[str, str]]:
    """The files and functions that several modules have: the main module, and its copy in a spawned child."""
    modules: dict[tuple[str, str], set[str]] = defaultdict(set)
    for place in (row.place for row in rows if row.place):
        modules[place.file, place.function].add(place.module)
    return {function for function, names in modules.items() if len(names) > 1}


def _name_columns(rows: Sequence[LineRow], places: Places, apart: Sequence[str]) -> list[Column]:
    several = _in_several_modules(rows)

    def module(row: LineRow) -> str:
        return clean(row.place.module) if row.place and (row.place.file, row.place.function) in several else ""

    def place(row: LineRow) -> str:
        if not row.place:
            return clean(row.name)
        return clean(places.numbered(row.place.file, row.line or row.place.first_line))

    return [
        Column("line", place, right=False, flexible=True, keep="end"),
        Column("function", lambda row: clean(row.place.function) if row.place else "", right=False, flexible=True),
        *([Column("module", module, right=False)] if several else []),
        *map(_label_column, apart),
    ]


def _label_column(name: str) -> Column:
    return Column(name, lambda row: clean(row.labels.get(name, "")), right=False)


def _number_columns(rows: Sequence[LineRow], is_estimated: bool) -> list[Column]:
    counted = [row for row in rows if row.is_counted]
    scale = scale_for(max((row.figures.wall_ns for row in counted), default=0))
    whole_ns = sum(max(row.figures.self_cpu_ns, 0) for row in counted)

    def time(row: LineRow, ns: int | None) -> str:
        mark = "~" if is_estimated and row.is_counted else ""
        return "" if ns is None else mark + scale.show(max(ns, 0))

    def of_call(row: LineRow, ns: int) -> str:
        return time(row, ns) if row.is_counted and row.place else ""

    columns = [
        Column("executed", lambda row: f"{row.figures.executed:,}" if row.place else ""),
        Column("entered", lambda row: f"{row.figures.entered:,}" if row.place else ""),
        Column("self CPU", lambda row: time(row, row.figures.self_cpu_ns)),
        Column("self wall", lambda row: time(row, row.figures.self_wall_ns) if row.is_counted else ""),
        Column("CPU", lambda row: of_call(row, row.figures.cpu_ns)),
        Column("inclusive", lambda row: of_call(row, row.figures.wall_ns)),
        Column(
            "share",
            lambda row: percent(max(row.figures.self_cpu_ns, 0), whole_ns) if row.is_counted else "",
            optional=True,
        ),
    ]
    if any(row.loops for row in rows):
        columns.insert(2, Column("loops", lambda row: loops_shown(row.loops)))
    if any(row.figures.system_ns is not None for row in counted):
        columns.insert(-1, Column("user", lambda row: time(row, row.figures.user_ns)))
        columns.insert(-1, Column("system", lambda row: time(row, row.figures.system_ns)))
    return columns
