"""The table of the program trace: a row for calls that are alike, indented by what they were made inside of."""

from __future__ import annotations

from collections.abc import Iterable

from interpose.analysis.calls.groupings import process_label, thread_label
from interpose.analysis.calls.structure import Called
from interpose.analysis.consolidation.kept_records import BY
from interpose.experiments.model.experiment import Experiment
from interpose.experiments.model.stacks import Site
from interpose.reports.formats.short_paths import Places
from interpose.reports.formats.table import Column, Table, Values, clean
from interpose.reports.formats.units import duration

FIGURES = (
    "calls",
    "errors",
    "wall_ns",
    "cpu_ns",
    "self_wall_ns",
    "self_cpu_ns",
    "wall_least_ns",
    "wall_most_ns",
    "cpu_least_ns",
    "cpu_most_ns",
    "bytes",
    "rows",
)
PERCENTS = (50, 95, 99)
_DEEPEST_SHOWN = 50
NAMES = (
    *("process", "thread", "depth", "transaction", "kind", "intrinsic", "site", "function", "detail", "error"),
    *FIGURES,
    *(f"p{percent}_ns" for percent in PERCENTS),
)


def structure_table(experiment: Experiment, rows: Iterable[Called]) -> Table:
    """The table of the records `rows` of `experiment`; they are taken one after the other."""
    places = Places([], experiment.founder.log.cwd)
    columns = [
        *_who_columns(experiment),
        Column("calls", lambda row: f"{row.record.sums.calls:,}"),
        Column("self wall", lambda row: duration(row.record.sums.self_wall_ns) if row.record.is_call else ""),
        Column("self CPU", lambda row: duration(row.record.sums.self_cpu_ns) if row.record.is_call else ""),
        Column("inclusive", lambda row: duration(row.record.sums.wall_ns)),
        Column("least", lambda row: duration(row.record.sums.wall_least_ns), optional=True),
        Column("most", lambda row: duration(row.record.sums.wall_most_ns)),
        Column("intrinsic", lambda row: clean(_indented(row)), right=False, flexible=True),
        Column("site", lambda row: clean(_where(row, places)), right=False, flexible=True),
        Column("detail", lambda row: clean(_detail(row)), right=False, flexible=True),
    ]
    return Table(NAMES, _values, columns, rows, shown=places.shown)


def _who_columns(experiment: Experiment) -> list[Column]:
    """The process and the thread, where there are several."""
    columns = []
    if len(experiment.processes) > 1:
        columns.append(Column("process", lambda row: clean(row.process.lineage or "founder"), right=False))
    if any(len(process.threads) > 1 for process in experiment.processes):
        columns.append(Column("thread", lambda row: _thread(row).partition(" ")[0], right=False))
    return columns


def _values(row: Called) -> Values:
    sums, site = row.record.sums, _site(row)
    intrinsic = row.process.intrinsic(_number(row, "intrinsic")) if row.record.is_call else None
    named = {
        "process": process_label(row.process),
        "thread": _thread(row),
        "depth": row.depth,
        "transaction": row.transaction or None,
        "kind": intrinsic and intrinsic.kind,
        "intrinsic": intrinsic and intrinsic.name,
        "site": f"{site.file}:{site.line}" if site else None,
        "function": site.function if site else None,
        "detail": row.process.string(_number(row, "detail")) or None,
        "error": row.process.string(_number(row, "error")) or None,
    }
    percentiles = {f"p{percent}_ns": sums.percentile_ns(percent) for percent in PERCENTS}
    return named | {name: getattr(sums, name) for name in FIGURES} | percentiles


def _number(row: Called, name: str) -> int:
    return row.record.key[BY.index(name)]


def _thread(row: Called) -> str:
    return thread_label(row.process, _number(row, "thread"))


def _name(row: Called) -> str:
    return row.transaction or row.process.intrinsic(_number(row, "intrinsic")).name


def _indented(row: Called) -> str:
    return "  " * min(row.depth, _DEEPEST_SHOWN) + _name(row)


def _site(row: Called) -> Site | None:
    return row.process.own_line(_number(row, "stack")) if _number(row, "stack") else None


def _where(row: Called, places: Places) -> str:
    site = _site(row)
    return places.named(site) if site else ""


def _detail(row: Called) -> str:
    error, detail = row.process.string(_number(row, "error")), row.process.string(_number(row, "detail"))
    return f"raised {error}  {detail}" if error else detail
