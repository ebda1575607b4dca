"""The view of a source: its lines with metrics to their left, hot lines marked, and where functions begin."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

from interpose.analysis.calls.figures import Vector
from interpose.analysis.calls.functions import Row
from interpose.analysis.lines.code_lines import CodeLines
from interpose.reports.formats.table import Table, table_of_cells
from interpose.reports.screen.metrics import ATTRIBUTED, INCLUSIVE, Column, cell

HOT_PERCENT = 75
END_OF_LINE = re.compile(r"\r\n|\r|\n")  # what Python counts, and nothing else
_MARK = "##"
_NOT_READ = "Which other lines have code: not known, this Python does not read the source"
_Lines = Mapping[int, Row]


def source_table(
    title: str,
    text: str,
    code: CodeLines | None,
    rows: _Lines,
    columns: Sequence[Column],
    total: Vector,
    hot_percent: int = HOT_PERCENT,
) -> Table:
    """The source `text` with the figures of its lines in `rows`; `code` says which of the others have code.

    A line is marked where a figure is at least `hot_percent` of the largest in its column.
    """
    columns = [column for column in columns if column.metric and column.flavour != ATTRIBUTED]
    largest = [max((_value(column, row) for row in rows.values()), default=0) for column in columns]
    figures = {number: _figures(row, columns, total) for number, row in rows.items()}
    hot = {number for number, row in rows.items() if _is_hot(row, columns, largest, hot_percent)}
    return annotated_table(title, text, code, [column.head for column in columns], figures, hot.__contains__)


def annotated_table(
    title: str,
    text: str,
    code: CodeLines | None,
    heads: Sequence[Sequence[str]],
    figures: Mapping[int, Sequence[str]],
    is_hot: Callable[[int], bool],
) -> Table:
    """The source `text` with the figures of its lines to the left, under `heads`; hot lines are marked.

    Lines without code have no figures; lines with code but without figures have `0.`.
    """
    cells: list[list[str]] = []
    last = 0
    for number, line in enumerate(source_lines(text), 1):
        cells += [["", *[""] * len(heads), f"<Function: {name}>"] for name in _functions(code, number)]
        there = figures.get(number) or ["0." if code is not None and number in code.lines else ""] * len(heads)
        cells.append([_MARK if is_hot(number) else "", *there, f"{number:>5}. {line.expandtabs()}"])
        last = number
    beyond = [number for number in sorted(figures) if number > last]
    cells += [["", *figures[each], f"{each:>5}. (not in this source)"] for each in beyond]
    notes = [] if code else [_NOT_READ]
    return table_of_cells(title, [("",), *heads, ("Source",)], cells, [False, *[True] * len(heads)], notes)


def source_lines(text: str) -> list[str]:
    """The lines of a source; nothing behind the last end of one."""
    lines = END_OF_LINE.split(text)
    return lines if lines[-1] else lines[:-1]


def _functions(code: CodeLines | None, number: int) -> Sequence[str]:
    return code.functions.get(number, ()) if code else ()


def _value(column: Column, row: Row) -> int:
    assert column.metric is not None
    return (row.inclusive if column.flavour == INCLUSIVE else row.exclusive)[column.metric.place]


def _figures(row: Row, columns: Sequence[Column], total: Vector) -> list[str]:
    vectors = (row.inclusive if column.flavour == INCLUSIVE else row.exclusive for column in columns)
    return [cell(column, vector, total) for column, vector in zip(columns, vectors, strict=True)]


def _is_hot(row: Row, columns: Sequence[Column], largest: Sequence[int], hot_percent: int) -> bool:
    values = zip((_value(column, row) for column in columns), largest, strict=True)
    return any(value and 100 * value >= hot_percent * most for value, most in values)
