"""The table of intrinsics: the library that has each, what it passes on to, how it is interposed."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from interpose.reports.formats.table import Column, Table, clean

NAMES = ("name", "kind", "library", "passes_on", "by", "installed", "why", "target", "place")


def map_table(rows: Iterable[Any]) -> Table:
    """The table of rows that have these names as attributes (interpose.instrumentation.mapping.Row)."""
    columns = [
        Column("intrinsic", lambda row: clean(row.name), right=False, flexible=True, keep="end"),
        Column("library", lambda row: clean(row.library), right=False),
        Column("passes on to", lambda row: clean(row.passes_on), right=False),
        Column("by", lambda row: row.by, right=False),
        Column("installed", lambda row: clean(row.why_not) or "yes", right=False, flexible=True),
    ]
    return Table(NAMES, _values, columns, rows)


def _values(row: Any) -> dict[str, Any]:
    texts = {name: getattr(row, name) for name in ("name", "kind", "library", "passes_on", "by", "target", "place")}
    return {**texts, "installed": not row.why_not, "why": row.why_not}
