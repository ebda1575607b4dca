"""A table as GitHub's Markdown."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import TextIO

from interpose.reports.formats.table import Column, Table

_SPECIAL = re.compile(r"([\\`*_{}\[\]<>#|~&!@])")


def write(table: Table, out: TextIO, width: int) -> None:
    """Write `table` to `out`; nothing in a text is taken for Markdown or HTML."""
    write_cells(table, out, lambda column, text: escaped(text))


def write_cells(table: Table, out: TextIO, cell: Callable[[Column, str], str]) -> None:
    """Write `table` to `out`; `cell` gives the Markdown of what a column shows."""
    _write_line(out, [column.title for column in table.columns])
    _write_line(out, ["---:" if column.right else "---" for column in table.columns])
    for row in table.rows:
        _write_line(out, [cell(column, column.show(row).strip()) for column in table.columns])


def escaped(text: str) -> str:
    """`text` as Markdown that shows it."""
    return _SPECIAL.sub(r"\\\1", text)


def _write_line(out: TextIO, cells: Iterable[str]) -> None:
    out.write(f"| {' | '.join(cells)} |\n")
