"""The table of a profile: a row for each group, its names, calls, self times, and what the call moved."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from interpose.analysis.profile import Profile, Row, is_uncertain, wait_ns
from interpose.experiments.log import Log
from interpose.reports.places import Places
from interpose.reports.table import Column, Table, Values, clean
from interpose.reports.units import percent, scale_for

LABELS = {
    "site": ("site", "function"),
    "function": ("function", "file"),
    "detail": ("detail",),
    "thread": ("thread", "process"),
    "process": ("process",),
}
NUMBERS = ("calls", "errors", "wall_ns", "cpu_ns", "self_wall_ns", "self_cpu_ns", "bytes")
SORTS = ("name", "calls", "errors", "wall", "cpu", "wait", "bytes")


def profile_table(profile: Profile, by: str, log: Log) -> Table:
    """The table of `profile`, which is grouped by `by`."""
    labels = LABELS.get(by, ())
    return Table(
        names=("kind", "intrinsic", *labels, *NUMBERS),
        values=lambda row: _values(row, labels),
        columns=[*_name_columns(profile, by, log), *_number_columns(profile, log)],
        rows=profile.rows,
    )


def arranged(rows: Sequence[Row], sort: str | None, limit: int | None) -> list[Row]:
    """The rows of calls, sorted by one of `SORTS` if any, at most `limit`; then the closing rows."""
    calls = [row for row in rows if row.is_of_calls]
    if sort:
        calls.sort(key=lambda row: _sort_key(row, sort))
    return calls[:limit] + [row for row in rows if not row.is_of_calls]


def _sort_key(row: Row, sort: str) -> Any:
    if sort == "name":
        return [row.kind or "", row.intrinsic or "", *row.labels.values()]
    numbers = {"wall": row.sums.self_wall_ns, "cpu": row.sums.self_cpu_ns, "wait": wait_ns(row)}
    return -(numbers[sort] if sort in numbers else getattr(row.sums, sort))


def _values(row: Row, labels: Sequence[str]) -> Values:
    named = {"kind": row.kind, "intrinsic": row.intrinsic} | {
        label: row.labels.get(label) for label in labels
    }
    return named | {name: getattr(row.sums, name) for name in NUMBERS}


def _name_columns(profile: Profile, by: str, log: Log) -> list[Column]:
    intrinsic = _ending_column("intrinsic", lambda row: row.intrinsic or row.kind or "")
    if by == "kind":
        return [Column("kind", lambda row: clean(row.kind or ""), right=False)]
    if by == "intrinsic":
        return [
            Column("kind", lambda row: clean(row.kind or "") if row.is_of_calls else "", right=False),
            intrinsic,
        ]
    if by in ("thread", "process"):
        first, *others = LABELS[by]
        named = Column(first, lambda row: clean(row.labels.get(first) or row.kind or ""), right=False)
        return [named, *map(_label_column, others)]
    if by == "detail":
        return [intrinsic, _label_column("detail")]
    return [intrinsic, *_place_columns(profile, by, log)]


def _label_column(label: str) -> Column:
    return Column(label, lambda row: clean(row.labels.get(label, "")), right=False, flexible=True)


def _place_columns(profile: Profile, by: str, log: Log) -> list[Column]:
    places = Places([row.site.file for row in profile.rows if row.site], log.cwd)
    function = _label_column("function")
    if by == "function":
        return [function, _ending_column("file", lambda row: places.file(row.labels.get("file", "")))]
    return [_ending_column("site", lambda row: places.line(row.site) if row.site else ""), function]


def _ending_column(title: str, show: Callable[[Row], str]) -> Column:
    """A column of names whose ends tell most."""
    return Column(title, lambda row: clean(show(row)), right=False, flexible=True, keep="end")


def _number_columns(profile: Profile, log: Log) -> list[Column]:
    whole_ns = profile.total.wall_ns
    scale = scale_for(whole_ns)

    def time(row: Row, ns: int) -> str:
        uncertain = is_uncertain(ns, row.sums.calls, log.inside_ns, log.resolution_ns)
        return ("~" if uncertain else "") + scale.show(ns)

    columns = [Column("calls", lambda row: _count(row.sums.calls, row))]
    if any(row.sums.errors for row in profile.rows):
        columns.append(Column("errors", lambda row: _count(row.sums.errors, row), optional=True))
    columns += [
        Column("wall", lambda row: time(row, row.sums.self_wall_ns)),
        Column("CPU", lambda row: time(row, row.sums.self_cpu_ns)),
        Column("wait", lambda row: time(row, wait_ns(row))),
        Column("share", lambda row: percent(row.sums.self_wall_ns, whole_ns), optional=True),
    ]
    if any(row.sums.bytes for row in profile.rows):
        columns.append(Column("bytes", lambda row: _count(row.sums.bytes, row), optional=True))
    return columns


def _count(number: int, row: Row) -> str:
    return f"{number:,}" if row.is_of_calls else ""
