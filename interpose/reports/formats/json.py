"""A table as JSON: a list of objects, one a line; times in nanoseconds."""

from __future__ import annotations

import json
from typing import TextIO

from interpose.reports.formats.table import Table


def write(table: Table, out: TextIO, width: int) -> None:
    """Write `table` to `out`; non-ASCII characters, and control characters of terminals, are escaped."""
    before = "["
    for row in table.rows:
        out.write(f"{before}\n{json.dumps(dict(table.values(row)))}")
        before = ","
    out.write("[]\n" if before == "[" else "\n]\n")
