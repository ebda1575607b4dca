"""What an experiment reveals, as a table, and what leaves it out the next time."""

from __future__ import annotations

from collections.abc import Iterable

from interpose.analysis.recording.secrets import Revealed
from interpose.reports.formats.table import Column, Table, clean

NAMES = ("what", "texts", "looks_like", "example", "left_out_by")
LEFT_OUT_BY = {
    "statements": "INTERPOSE_ARGUMENTS=db=nothing",
    "paths": "INTERPOSE_ARGUMENTS=file=nothing",
    "addresses": "INTERPOSE_ARGUMENTS=net=nothing",
    "programs": "INTERPOSE_ARGUMENTS=process=nothing",
    "requests and transactions": "INTERPOSE_ARGUMENTS=logic=nothing",
    "modules": "INTERPOSE_ARGUMENTS=import=nothing",
    "terminals, locks": "INTERPOSE_KINDS",
    "command line": "INTERPOSE_REDACT",
    "settings": "INTERPOSE_REDACT",
    "labels, warnings": "INTERPOSE_REDACT",
    "host and directories": "INTERPOSE_REDACT",
    "files of code": "INTERPOSE_REDACT",
    "code in no file": "INTERPOSE_REDACT",
    "archived sources": "INTERPOSE_ARCHIVE=off",
    "shown": "INTERPOSE_DIALOGUE=0",
    "typed": "INTERPOSE_DIALOGUE=0",
    "notes": "interpose notes --edit",
    "environment": "never recorded",
}


def secrets_table(rows: Iterable[Revealed]) -> Table:
    """A row for each sort of texts."""
    columns = [
        Column("what", lambda row: row.what, right=False),
        Column("texts", lambda row: f"{row.texts:,}"),
        Column("look like", lambda row: _looks(row) or "", right=False),
        Column("example, masked", lambda row: clean(row.example), right=False, flexible=True),
        Column("left out by", lambda row: LEFT_OUT_BY[row.what], right=False),
    ]
    return Table(NAMES, _values, columns, rows)


def _looks(row: Revealed) -> str | None:
    return ", ".join(f"{number:,} {sign}" for sign, number in row.signs.most_common()) or None


def _values(row: Revealed) -> dict[str, object]:
    values = (row.what, row.texts, _looks(row), row.example, LEFT_OUT_BY[row.what])
    return dict(zip(NAMES, values, strict=True))
