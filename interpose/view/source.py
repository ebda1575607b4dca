"""A source with what each of its lines took to the left: the sums of the line's rows in the report by line."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from interpose.analysis.calls.rows import Row, largest_first
from interpose.analysis.consolidation.sums import total
from interpose.analysis.lines.code_lines import code_lines
from interpose.analysis.profile.balance import Code
from interpose.reports.formats.table import Column, Table, clean
from interpose.reports.screen.source_view import source_lines
from interpose.reports.tables.rows import profile_table
from interpose.view.drilling import Line
from interpose.view.reading import Reading

# Of several calls of a line, inclusive times overlap; and the text needs the room of the others.
FIGURES = ("calls", "self wall", "self CPU", "\u00b1 95 %", "wait")


@dataclass(frozen=True)
class SourceLine:
    """A line of a source, and the sum of its rows, if it has any."""

    number: int
    text: str
    row: Row | None


@dataclass(frozen=True)
class SourceView:
    """The table of a source; `place` is that of the line that was asked for, and `title` names the file and any remark
    on its text."""

    table: Table
    title: str
    place: int
    file: str


def source_view(reading: Reading, wanted: Line | None) -> SourceView | None:
    """The file of the line `wanted`, or of your line that took most; None without any."""
    wanted = wanted or _hottest(reading)
    if wanted is None:
        return None
    sought = reading.sources.sought(wanted.file)
    text = sought.source.text if sought.source else ""
    lines = _lines(reading, wanted.file, source_lines(text) if text else [])
    number = wanted.number or _first_line(text, wanted.function)
    place = next((place for place, line in enumerate(lines) if line.number >= number), 0)
    remark = f" ({sought.why or sought.note})" if sought.why or sought.note else ""
    return SourceView(_table(reading, lines), clean(reading.places.file(wanted.file) + remark), place, wanted.file)


def _hottest(reading: Reading) -> Line | None:
    found = [row for row in reading.profile("site").rows if row.site and not row.is_idle]
    found.sort(key=lambda row: (not (row.site and row.site.own), *largest_first(row)))
    return next((Line(row.site.file, row.site.line) for row in found if row.site), None)


def _first_line(text: str, function: str) -> int:
    """Where a function begins; 0 if that is not known."""
    code = code_lines(text) if function else None
    return next((line for line, names in code.functions.items() if function in names), 0) if code else 0


def _lines(reading: Reading, file: str, text: Sequence[str]) -> list[SourceLine]:
    """All lines of the text, and behind them those that took time and are not in it."""
    rows: dict[int, list[Row]] = defaultdict(list)
    for row in reading.profile("site").rows:
        if row.site and row.site.file == file:
            rows[row.site.line].append(row)
    found = {number: _together(each) for number, each in rows.items()}
    there = [SourceLine(number, line, found.get(number)) for number, line in enumerate(text, 1)]
    beyond = sorted(number for number in found if not 0 < number <= len(text))
    return [*there, *(SourceLine(number, "(not in this source)", found[number]) for number in beyond)]


def _together(rows: Sequence[Row]) -> Row:
    """One row for all of a line."""
    code = Code()
    for row in rows:
        code.add(row.code or Code())
    is_of_calls = any(row.is_of_calls for row in rows)
    is_sampled = any(row.code for row in rows)
    return replace(
        Row(None, None, site=rows[0].site, is_of_calls=is_of_calls, sums=total(row.sums for row in rows)),
        code=code if is_sampled else None,
    )


def _table(reading: Reading, lines: Sequence[SourceLine]) -> Table:
    """The report's columns of figures, then the numbers and texts of lines."""
    made = replace(reading.profile("site"), rows=[line.row for line in lines if line.row])
    by_line = profile_table(made, "site", reading.experiment.founder.log)
    figures = [_of_line(each) for each in by_line.columns if each.title in FIGURES]
    columns = [
        *figures,
        Column("line", lambda line: str(line.number)),
        Column("source", lambda line: clean(line.text.expandtabs()), right=False, flexible=True),
    ]
    return Table(by_line.names, lambda line: _values(by_line, line), columns, lines)


def _of_line(column: Column) -> Column:
    return replace(column, show=lambda line: column.show(line.row) if line.row else "", optional=True)


def _values(by_line: Table, line: SourceLine) -> dict[str, Any]:
    return dict(by_line.values(line.row)) if line.row else {}
