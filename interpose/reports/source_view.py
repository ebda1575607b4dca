"""The view of a source: its lines with metrics to their left, hot lines marked, and where functions begin."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from interpose.analysis.code_lines import CodeLines
from interpose.analysis.figures import Vector
from interpose.analysis.functions import Row
from interpose.reports.grid import Grid
from interpose.reports.metrics import ATTRIBUTED, INCLUSIVE, Column, cell

HOT_PERCENT = 75
_MARK = "##"
_Lines = Mapping[int, Row]


def source_grid(
    title: str,
    text: str,
    code: CodeLines | None,
    rows: _Lines,
    columns: Sequence[Column],
    total: Vector,
    hot_percent: int = HOT_PERCENT,
) -> Grid:
    """The source `text` with the figures of its lines in `rows`; `code` says which of the others have code.

    A line is marked where a figure is at least `hot_percent` of the largest in its column.
    """
    columns = [column for column in columns if column.metric and column.flavour != ATTRIBUTED]
    largest = [max((_value(column, row) for row in rows.values()), default=0) for column in columns]
    lines = text.splitlines()
    cells: list[list[str]] = []
    for number, line in enumerate(lines, 1):
        for name in code.functions.get(number, ()) if code else ():
            cells.append(["", *[""] * len(columns), f"<Function: {name}>"])
        has_code = code is not None and number in code.lines
        figures = _figures(rows.get(number), columns, total, has_code)
        mark = _MARK if number in rows and _is_hot(rows[number], columns, largest, hot_percent) else ""
        cells.append([mark, *figures, f"{number:>5}. {line.expandtabs()}"])
    beyond = [number for number in sorted(rows) if number > len(lines)]
    cells += [["", *_figures(rows[each], columns, total, True), f"{each:>5}. (not in this source)"] for each in beyond]
    heads = [("",), *(column.head for column in columns), ("Source",)]
    notes = [] if code else ["Which other lines have code: not known, this Python does not read the source"]
    return Grid(title, heads, cells, [False, *[True] * len(columns)], notes)


def _value(column: Column, row: Row) -> int:
    assert column.metric is not None
    return (row.inclusive if column.flavour == INCLUSIVE else row.exclusive)[column.metric.place]


def _figures(row: Row | None, columns: Sequence[Column], total: Vector, has_code: bool) -> list[str]:
    """What stands left of a line: nothing where there is no code, `0.` where there is and nothing was called."""
    if row is None:
        return ["0." if has_code else ""] * len(columns)
    vectors = (row.inclusive if column.flavour == INCLUSIVE else row.exclusive for column in columns)
    return [cell(column, vector, total) for column, vector in zip(columns, vectors, strict=True)]


def _is_hot(row: Row, columns: Sequence[Column], largest: Sequence[int], hot_percent: int) -> bool:
    values = zip((_value(column, row) for column in columns), largest, strict=True)
    return any(value and 100 * value >= hot_percent * most for value, most in values)
