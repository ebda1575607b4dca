"""A table as comma-separated values: a line of names, then one a row; times in nanoseconds."""

from __future__ import annotations

import csv
import json
from typing import Any, TextIO

from interpose.reports.formats.table import Table, clean

_FORMULA = ("=", "+", "-", "@")


def write(table: Table, out: TextIO, width: int) -> None:
    """Write `table` to `out`; what a spreadsheet would take for a formula has an apostrophe before it."""
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(table.names)
    for row in table.rows:
        values = table.values(row)
        writer.writerow([_cell(values.get(name)) for name in table.names])


def _cell(value: Any) -> Any:
    if isinstance(value, dict):
        value = json.dumps(value) if value else None
    return plain(value) if isinstance(value, str) else value


def plain(value: str) -> str:
    """`value` as a spreadsheet shows it and does not calculate it."""
    text = clean(value)
    return f"'{text}" if text.startswith(_FORMULA) else text
