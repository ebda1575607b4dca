"""Tables as `interpose display` writes them: heads of several lines, as text, HTML or with a sign between cells."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from html import escape
from typing import TextIO

from interpose.reports.formats.csv import plain
from interpose.reports.formats.table import Table, clean, columns_of

TEXT, HTML, DELIMITER = "text", "html", "delimiter"
_GAP = "  "


def write(table: Table, out: TextIO, mode: str = TEXT, sign: str = ",") -> None:
    """Write `table` to `out` in one of the three ways; `sign` is what stands between cells."""
    if mode == HTML:
        _write_html(table, out)
    elif mode == DELIMITER:
        _write_delimited(table, out, sign)
    else:
        _write_text(table, out)


def _heads(table: Table) -> list[list[str]]:
    return [column.title.split("\n") for column in table.columns]


def _cells(table: Table) -> Iterator[list[str]]:
    for row in table.rows:
        yield [column.show(row) for column in table.columns]


def _write_text(table: Table, out: TextIO) -> None:
    rows = [[clean(cell) for cell in row] for row in _cells(table)]
    heads = _head_lines(table)
    right = [column.right for column in table.columns]
    widths = [max(map(columns_of, cells), default=0) for cells in zip(*heads, *rows, strict=True)]
    if table.title:
        out.write(f"{clean(table.title)}\n\n")
    for number, cells in enumerate([*heads, *rows]):
        is_right = [False] * len(right) if number < len(heads) else right
        padded = [
            " " * (width - columns_of(cell)) + cell if on_right else cell + " " * (width - columns_of(cell))
            for cell, width, on_right in zip(cells, widths, is_right, strict=True)
        ]
        out.write(_GAP.join(padded).rstrip() + "\n")
    for note in table.notes:
        out.write(f"{clean(note)}\n")


def _head_lines(table: Table) -> list[list[str]]:
    """The heads line by line, those of few lines at the bottom; nothing if all are empty."""
    heads = _heads(table)
    height = max(map(len, heads), default=0)
    padded = [[*[""] * (height - len(head)), *head] for head in heads]
    return [list(line) for line in zip(*padded, strict=True) if any(line)]


def _write_html(table: Table, out: TextIO) -> None:
    out.write("<table>\n")
    if table.title:
        out.write(f"<caption>{escape(clean(table.title))}</caption>\n")
    heads = ("<br>".join(escape(line) for line in head if line) for head in _heads(table))
    out.write("<tr>" + "".join(f"<th>{head}</th>" for head in heads) + "</tr>\n")
    for row in _cells(table):
        cells = (
            f"<td{' align=right' if column.right else ''}>{escape(clean(cell))}</td>"
            for cell, column in zip(row, table.columns, strict=True)
        )
        out.write("<tr>" + "".join(cells) + "</tr>\n")
    out.write("</table>\n")
    for note in table.notes:
        out.write(f"<p>{escape(clean(note))}</p>\n")


def _write_delimited(table: Table, out: TextIO, sign: str) -> None:
    writer = csv.writer(out, delimiter=sign, lineterminator="\n", quoting=csv.QUOTE_ALL)
    if any(any(head) for head in _heads(table)):
        writer.writerow([" ".join(line for line in head if line) for head in _heads(table)])
    for row in _cells(table):
        writer.writerow([plain(cell.strip()) for cell in row])
