"""A table as aligned text."""

from __future__ import annotations

from typing import TextIO

from interpose.reports.formats.table import Table, lines


def write(table: Table, out: TextIO, width: int) -> None:
    """Write `table` to `out`, in lines of at most `width`."""
    for line in lines(table.columns, table.rows, width):
        out.write(line + "\n")
