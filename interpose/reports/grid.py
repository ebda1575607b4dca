"""Tables whose heads have several lines, as text, as HTML or with a sign between the cells."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import TextIO

from interpose.reports.csv import plain
from interpose.reports.table import Table, clean, columns_of

TEXT, HTML, DELIMITER = "text", "html", "delimiter"
_GAP = "  "


@dataclass
class Grid:
    """A table: its title, the lines of each column's head, and rows of cells; of the columns `right` are numbers."""

    title: str
    heads: Sequence[Sequence[str]]
    rows: Iterable[Sequence[str]]
    right: Sequence[bool] = ()
    notes: Sequence[str] = field(default_factory=tuple)


def grid_of(table: Table, title: str) -> Grid:
    """The table of another report, with what people are shown of it."""
    columns = table.columns
    rows = ([column.show(row) for column in columns] for row in table.rows)
    return Grid(title, [(column.title,) for column in columns], rows, [column.right for column in columns])


def write(grid: Grid, out: TextIO, mode: str = TEXT, sign: str = ",") -> None:
    """Write `grid` to `out` in one of the three ways; `sign` is what stands between cells."""
    if mode == HTML:
        _write_html(grid, out)
    elif mode == DELIMITER:
        _write_delimited(grid, out, sign)
    else:
        _write_text(grid, out)


def _write_text(grid: Grid, out: TextIO) -> None:
    rows = [[clean(cell) for cell in row] for row in grid.rows]
    heads = _head_lines(grid)
    right = [*grid.right, *[False] * (len(grid.heads) - len(grid.right))]
    widths = [max(map(columns_of, cells), default=0) for cells in zip(*heads, *rows, strict=True)]
    if grid.title:
        out.write(f"{clean(grid.title)}\n\n")
    for number, cells in enumerate([*heads, *rows]):
        is_right = [False] * len(right) if number < len(heads) else right
        padded = [
            " " * (width - columns_of(cell)) + cell if on_right else cell + " " * (width - columns_of(cell))
            for cell, width, on_right in zip(cells, widths, is_right, strict=True)
        ]
        out.write(_GAP.join(padded).rstrip() + "\n")
    for note in grid.notes:
        out.write(f"{clean(note)}\n")


def _head_lines(grid: Grid) -> list[list[str]]:
    """The heads line by line, those of few lines at the bottom; nothing where all are empty."""
    height = max((len(head) for head in grid.heads), default=0)
    padded = [[*[""] * (height - len(head)), *head] for head in grid.heads]
    return [list(line) for line in zip(*padded, strict=True) if any(line)]


def _write_html(grid: Grid, out: TextIO) -> None:
    right = [*grid.right, *[False] * (len(grid.heads) - len(grid.right))]
    out.write("<table>\n")
    if grid.title:
        out.write(f"<caption>{escape(clean(grid.title))}</caption>\n")
    heads = ("<br>".join(escape(line) for line in head if line) for head in grid.heads)
    out.write("<tr>" + "".join(f"<th>{head}</th>" for head in heads) + "</tr>\n")
    for row in grid.rows:
        cells = (
            f"<td{' align=right' if on_right else ''}>{escape(clean(cell))}</td>"
            for cell, on_right in zip(row, right, strict=True)
        )
        out.write("<tr>" + "".join(cells) + "</tr>\n")
    out.write("</table>\n")
    for note in grid.notes:
        out.write(f"<p>{escape(clean(note))}</p>\n")


def _write_delimited(grid: Grid, out: TextIO, sign: str) -> None:
    writer = csv.writer(out, delimiter=sign, lineterminator="\n", quoting=csv.QUOTE_ALL)
    if any(any(head) for head in grid.heads):
        writer.writerow([" ".join(line for line in head if line) for head in grid.heads])
    for row in grid.rows:
        writer.writerow([plain(cell.strip()) for cell in row])
