"""A source with what each of its lines took to the left: what line trace counted; where lines were not traced, the sums
of the line's rows in the report by line."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from interpose.analysis.calls.rows import Row, largest_first
from interpose.analysis.consolidation.sums import total
from interpose.analysis.lines.code_lines import code_lines
from interpose.analysis.lines.line_rows import Figures
from interpose.analysis.profile.balance import Code
from interpose.experiments.model.sources import Sought
from interpose.reports.formats.table import Column, Table, clean
from interpose.reports.screen.source_view import source_lines
from interpose.reports.tables import line_sources
from interpose.reports.tables.rows import profile_table
from interpose.view.drilling import Line
from interpose.view.reading import Reading

# Of several calls of a line, inclusive times overlap; and the text needs the room of the others.
FIGURES = ("calls", "self wall", "self CPU", "\u00b1 95 %", "wait")


@dataclass(frozen=True)
class SourceLine:
    """A line of a source, and its figures, if it has any: a row, or those of line trace."""

    number: int
    text: str
    figures: Any = None


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
    traced = reading.traced.get(wanted.file)
    figures = traced.lines if traced else _sums(reading, wanted.file)
    lines = _lines(source_lines(text) if text else [], figures)
    columns = _columns_traced() if traced else _columns(reading, lines)
    number = wanted.number or _first_line(text, wanted.function)
    place = next((place for place, line in enumerate(lines) if line.number >= number), 0)
    title = clean("; ".join([reading.places.file(wanted.file), *_remarks(reading, sought, bool(traced))]))
    return SourceView(Table((), lambda line: {}, [*columns, *SOURCE], lines), title, place, wanted.file)


def _hottest(reading: Reading) -> Line | None:
    found = [row for row in reading.profile("site").rows if row.site and not row.is_idle]
    found.sort(key=lambda row: (not (row.site and row.site.own), *largest_first(row)))
    of_calls = next((Line(row.site.file, row.site.line) for row in found if row.site), None)
    for each in reading.traced.values():
        return Line(each.file, max(each.lines, key=lambda number: each.lines[number].self_cpu_ns))
    return of_calls


def _remarks(reading: Reading, sought: Sought, is_traced: bool) -> Iterator[str]:
    """What there is to say of the text, and of the figures."""
    if remark := sought.why or sought.note:
        yield remark
    if is_traced and (percent := reading.recording_percent):
        yield f"recording took {percent} % of the CPU time: times are estimates"


def _first_line(text: str, function: str) -> int:
    """Where a function begins; 0 if that is not known."""
    code = code_lines(text) if function else None
    return next((line for line, names in code.functions.items() if function in names), 0) if code else 0


def _lines(text: Sequence[str], figures: Mapping[int, Any]) -> list[SourceLine]:
    """All lines of the text, and behind them those that took time and are not in it."""
    there = [SourceLine(number, line, figures.get(number)) for number, line in enumerate(text, 1)]
    beyond = sorted(number for number in figures if not 0 < number <= len(text))
    return [*there, *(SourceLine(number, "(not in this source)", figures[number]) for number in beyond)]


def _sums(reading: Reading, file: str) -> dict[int, Row]:
    """The sum of the rows of each line of `file`."""
    rows: dict[int, list[Row]] = defaultdict(list)
    for row in reading.profile("site").rows:
        if row.site and row.site.file == file:
            rows[row.site.line].append(row)
    return {number: _together(each) for number, each in rows.items()}


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


def _columns(reading: Reading, lines: Sequence[SourceLine]) -> list[Column]:
    """The report's columns of figures."""
    made = replace(reading.profile("site"), rows=[line.figures for line in lines if line.figures])
    by_line = profile_table(made, "site", reading.experiment.founder.log)
    return [_of_line(each.title, each.show) for each in by_line.columns if each.title in FIGURES]


def _columns_traced() -> list[Column]:
    """Those of line trace."""
    return [_of_line(" ".join(each.head), partial(_shown, each)) for each in line_sources.FIGURES]


def _shown(figure: line_sources.LineFigure, of: Figures) -> str:
    return figure.shown(figure.value(of))


def _of_line(title: str, show: Callable[[Any], str]) -> Column:
    return Column(title, lambda line: show(line.figures) if line.figures else "", optional=True)


SOURCE = (
    Column("line", lambda line: str(line.number)),
    Column("source", lambda line: clean(line.text.expandtabs()), right=False, flexible=True),
)
