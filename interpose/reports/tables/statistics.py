"""The table of a recording's own figures."""

from __future__ import annotations

from collections.abc import Iterable

from interpose.analysis.recording.statistics import Statistic
from interpose.reports.formats.table import Column, Table
from interpose.reports.formats.units import duration, size

NAMES = Statistic._fields
NOT_KNOWN = "-"


def statistics_table(rows: Iterable[Statistic]) -> Table:
    """The table of `rows`."""
    columns = [
        Column("group", lambda row: row.group, right=False),
        Column("figure", lambda row: row.name, right=False),
        Column("value", _shown),
    ]
    return Table(NAMES, Statistic._asdict, columns, rows)


def _shown(row: Statistic) -> str:
    if row.value is None:
        return NOT_KNOWN
    if row.unit == "ns":
        return duration(row.value)
    if row.unit == "bytes":
        return size(row.value)
    return f"{row.value:,} {row.unit}".rstrip()
