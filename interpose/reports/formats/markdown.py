"""A table as GitHub's Markdown."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TextIO

from interpose.reports.formats.table import Table

_SPECIAL = re.compile(r"([\\`*_{}\[\]<>#|~&!@])")


def write(table: Table, out: TextIO, width: int) -> None:
    """Write `table` to `out`; nothing in a text is taken for Markdown or HTML."""
    _write_line(out, [column.title for column in table.columns])
    _write_line(out, ["---:" if column.right else "---" for column in table.columns])
    for row in table.rows:
        _write_line(out, [_SPECIAL.sub(r"\\\1", column.show(row).strip()) for column in table.columns])


def _write_line(out: TextIO, cells: Iterable[str]) -> None:
    out.write(f"| {' | '.join(cells)} |\n")
