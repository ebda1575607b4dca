"""The event trace with the Natural Profiler's event types beside the names of today, and its codes in other tables."""

from __future__ import annotations

from collections.abc import Iterable

from interpose.analysis.calls.groupings import process_label
from interpose.analysis.calls.rows import Row
from interpose.experiments.model.experiment import Experiment
from interpose.legacy.event_types import EventType, codes_of
from interpose.reports.formats.short_paths import Places
from interpose.reports.formats.table import Column, Table, Values, clean
from interpose.reports.formats.units import SECOND_NS

NAMES = ("since_ns", "process", "thread", "level", "code", "event", "intrinsic", "site", "function", "detail")
NATURAL = "natural"


def event_types_table(experiment: Experiment, rows: Iterable[EventType]) -> Table:
    """The table of the events `rows` of `experiment`; they are taken one after the other."""
    start_ns = experiment.founder.log.start_ns
    places = Places([], experiment.founder.log.cwd)
    columns = [
        Column("since start", lambda row: f"{(row.time_ns - start_ns) / SECOND_NS:.6f} s"),
        *([Column("process", lambda row: process_label(row.process))] if len(experiment.processes) > 1 else []),
        Column("level", lambda row: str(row.call.depth) if row.call else ""),
        Column("code", lambda row: row.code, right=False),
        Column("event", lambda row: row.name, right=False),
        Column("intrinsic", lambda row: clean(_intrinsic(row) or ""), right=False, flexible=True),
        Column("site", lambda row: clean(_where(row, places)), right=False, flexible=True),
        Column("detail", lambda row: clean(_detail(row) or ""), right=False, flexible=True),
    ]
    return Table(NAMES, lambda row: _values(row, start_ns), columns, rows)


def with_codes(table: Table) -> Table:
    """The table of a profile by kind or intrinsic, with the codes of each row's events."""

    def show(row: Row) -> str:
        return " ".join(codes_of(row.kind or "", row.intrinsic or "")) if row.is_of_calls else ""

    column = Column("codes", show, right=False)
    names = [*table.names[:1], "codes", *table.names[1:]]
    return Table(names, lambda row: {**table.values(row), "codes": show(row)}, [column, *table.columns], table.rows)


def _values(row: EventType, start_ns: int) -> Values:
    site = row.process.own_line(row.call.event.stack) if row.call and row.call.event.stack else None
    values = (
        row.time_ns - start_ns,
        process_label(row.process),
        row.call.event.thread if row.call else None,
        row.call.depth if row.call else None,
        row.code or None,
        row.name,
        _intrinsic(row),
        f"{site.file}:{site.line}" if site else None,
        site.function if site else None,
        _detail(row),
    )
    return dict(zip(NAMES, values, strict=True))


def _intrinsic(row: EventType) -> str | None:
    return row.process.intrinsic(row.call.event.intrinsic).name if row.call else None


def _where(row: EventType, places: Places) -> str:
    site = row.process.own_line(row.call.event.stack) if row.call and row.call.event.stack else None
    return f"{places.line(site)} {site.function}" if site else ""


def _detail(row: EventType) -> str | None:
    return row.text or (row.process.string(row.call.event.detail) if row.call else "") or None
