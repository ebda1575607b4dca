"""The table of a profile: a row for each group, with names, calls, self and inclusive times, and bytes or rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from interpose.analysis.calls.groupings import COUNTED, WHOLES
from interpose.analysis.calls.profile import Profile
from interpose.analysis.calls.rows import Row, is_uncertain, ranked, wait_ns
from interpose.analysis.consolidation.sums import total
from interpose.analysis.profile.balance import Code
from interpose.analysis.profile.count_rows import DIVIDED
from interpose.analysis.profile.margin import sums_of
from interpose.analysis.profile.rows import WITH_CODE
from interpose.experiments.metadata.log import Log
from interpose.reports.formats.counts import count_shown, counter_title
from interpose.reports.formats.short_paths import Places
from interpose.reports.formats.table import Column, Table, clean
from interpose.reports.formats.units import Scale, count, margin_of_samples, margin_percent, percent, scale_for

LABELS = {
    "site": ("site", "function"),
    "function": ("function", "file"),
    "detail": ("detail",),
    "statement": ("statement",),
    "file": ("file",),
    **{by: (by,) for by in WHOLES},
    "thread": ("thread", "process"),
}
ABOUT = {"statement": "db", "file": "file"}  # each with the kind of its calls
COUNTING_PASSED = ("kind", *WHOLES)
NUMBERS = ("calls", "errors", "wall_ns", "cpu_ns", "self_wall_ns", "self_cpu_ns", "bytes", "rows")
# Of functions and lines.
CODE = ("file", "line", "samples", "gil_ns", "runqueue_ns", "unexplained_ns", "margin_ns", "tasks")
MARGINS = ("calls_margin", "self_wall_margin_ns")  # for 95 %, where transactions were sampled
SAMPLED = ("cpu_ns", "self_cpu_ns")  # for sampled calls
SORTS = ("name", "calls", "errors", "wall", "cpu", "wait", "inclusive", "bytes", "rows")


def profile_table(profile: Profile, by: str, log: Log) -> Table:
    """The table of `profile`, which is grouped by `by`."""
    labels = LABELS.get(by, ())
    passed = ("passed",) if by in COUNTING_PASSED else ()
    counted = ("counted",) if by in COUNTED else ()
    blank = (*(name for name in NUMBERS if name not in SAMPLED), *passed) if log.interval else ()
    unknown = dict.fromkeys(blank)
    numbers = _number_columns(profile, by, log)
    places = Places([row.site.file for row in profile.rows if row.site], log.cwd)
    margins = MARGINS if profile.estimate and profile.estimate.is_scaled else ()
    code = tuple(name for name in CODE if name not in labels) if by in WITH_CODE else ()
    counters = profile.counters
    count_margins = tuple(f"{name}_margin" for name in counters) if by in DIVIDED else ()
    return Table(
        names=("kind", "intrinsic", *labels, *NUMBERS, *passed, *counted, *margins, *code, *counters, *count_margins),
        values=lambda row: (
            _values(row, labels)
            | dict.fromkeys(passed, row.passed)
            | dict.fromkeys(counted, row.counted)
            | dict(zip(margins, _margins(row), strict=False))
            | unknown
            | (_of_code(row) if code else {})
            | _counts(row, counters, by in DIVIDED)
        ),
        columns=[*_name_columns(profile, by, places), *(_of_sampled(profile, numbers) if log.interval else numbers)],
        rows=profile.rows,
        shown=places.shown,
    )


def _margins(row: Row) -> tuple[int | None, int | None]:
    """How far the calls and the self time of a row may be off; None if nothing is estimated, or it is not known."""
    return (round(row.margin.calls), round(row.margin.self_wall_ns)) if row.margin else (None, None)


def _counts(row: Row, counters: Iterable[str], with_margins: bool) -> dict[str, int | None]:
    """What each counter counted, and how far that may be off; None where it is not known."""
    found: dict[str, int | None] = {}
    for name in counters:
        count = row.counts.get(name)
        found[name] = count.count if count else None
        if with_margins:
            found[f"{name}_margin"] = round(count.margin) if count else None
    return found


def _of_code(row: Row) -> dict[str, Any]:
    """The place of a row's code, and its samples; empty for calls."""
    found = row.code
    file = row.labels.get("file", row.site.file if row.site else None)
    return {
        "file": file,
        "line": row.site.line or None if row.site else None,
        "samples": found.samples if found else None,
        "gil_ns": found.lock_ns if found else None,
        "runqueue_ns": found.processor_ns if found else None,
        "unexplained_ns": found.unexplained_ns if found else None,
        "margin_ns": round(found.margin_ns) if found else None,
        "tasks": row.tasks if found else None,
    }


def _of_sampled(profile: Profile, columns: Sequence[Column]) -> list[Column]:
    """The columns of sampled calls: their CPU times, and their share of the total; the others are blank."""
    whole_ns = profile.total.cpu_ns
    shown = {each.title: each.show for each in columns if each.title in ("self CPU", "")}
    shown["share"] = lambda row: percent(row.sums.self_cpu_ns, whole_ns) if row.is_timed else ""
    return [replace(each, show=shown.get(each.title, lambda row: "")) for each in columns]


def arranged(rows: Sequence[Row], sort: str | None, limit: int | None, with_rest: bool = False) -> list[Row]:
    """The rows of calls and code, sorted by one of `SORTS` if any, at most `limit`; then the closing rows, of each kind
    as many; last, `with_rest`, the sum of the first rows that are left out.

    What waited for work comes last of all, and is the first to go where there are more rows than `limit`.
    """
    calls = [row for row in rows if row.is_of_calls or row.is_of_code]
    if sort:
        calls.sort(key=lambda row: _sort_key(row, sort))
    calls.sort(key=lambda row: row.is_idle)
    closing = (row for row in rows if not row.is_of_calls and not row.is_of_code)
    rest = [_rest_of(calls[limit:])] if with_rest and limit is not None and len(calls) > limit else []
    return [*ranked([*calls[:limit], *_limited(closing, limit)]), *rest]


def _rest_of(rows: Sequence[Row]) -> Row:
    """What the rows took that are not shown. Inclusive times overlap, so there is no sum of them."""
    sums = total(row.sums for row in rows)
    sums.wall_ns = sums.cpu_ns = 0
    counts = sums_of(row.counts for row in rows)
    named = count(len(rows), "more row")
    if any(row.intrinsic for row in rows) or rows[0].site:  # what is sampled has no intrinsic
        return Row(None, named, sums=sums, counts=counts)
    labels = dict.fromkeys(rows[0].labels, "")
    if not labels:
        return Row(named, None, sums=sums, counts=counts)
    return Row(None, None, labels | {next(iter(labels)): named}, sums=sums, counts=counts)


def _limited(closing: Iterable[Row], limit: int | None) -> Iterator[Row]:
    """The first closing rows of each kind; there are several of the rows of threads and what they are a part of."""
    found: Counter[str | None] = Counter()
    for row in closing:
        found[row.kind] += 1
        if limit is None or found[row.kind] <= limit:
            yield row


def _sort_key(row: Row, sort: str) -> Any:
    if sort == "name":
        return [row.kind or "", row.intrinsic or "", *row.labels.values()]
    numbers = {
        "wall": row.sums.self_wall_ns,
        "cpu": row.sums.self_cpu_ns,
        "wait": wait_ns(row),
        "inclusive": row.sums.wall_ns,
    }
    return -(numbers[sort] if sort in numbers else getattr(row.sums, sort))


def _values(row: Row, labels: Sequence[str]) -> dict[str, Any]:
    named = {"kind": row.kind, "intrinsic": row.intrinsic} | {
        label: row.labels.get(label) for label in labels
    }
    return named | {name: getattr(row.sums, name) for name in NUMBERS}


def _name_columns(profile: Profile, by: str, places: Places) -> list[Column]:
    if by == "kind":
        return [Column("kind", lambda row: clean(row.kind or ""), right=False)]
    kind = Column("kind", lambda row: clean(row.kind or ""), right=False)
    told = [kind] if by == "intrinsic" or _kinds_tell_rows_apart(profile) else []
    if by in WHOLES:
        first, *others = LABELS[by]
        named = Column(first, lambda row: clean(row.labels.get(first) or row.kind or ""), right=False)
        return [named, *map(_label_column, others), kind]
    if by in ABOUT:
        return [kind, replace(_label_column(by), show=lambda row: _about(row, by))]
    intrinsic = _ending_column("intrinsic", lambda row: row.intrinsic or ("" if told else row.kind) or "")
    if by == "intrinsic":
        return [*told, intrinsic]
    if by == "detail":
        return [*told, intrinsic, _label_column("detail")]
    return [*told, intrinsic, *_place_columns(by, places)]


def _about(row: Row, by: str) -> str:
    """The statement or file of a row; calls of that kind may have none, such as commits."""
    name = row.labels.get(by, "")
    return clean(name) or (f"no {by}" if row.is_of_calls and row.kind == ABOUT[by] else "")


def _kinds_tell_rows_apart(profile: Profile) -> bool:
    """Whether an intrinsic has rows of several kinds, or a row is of waiting for work."""
    calls = [row for row in profile.rows if row.is_of_calls]
    kinds = {(row.intrinsic, row.kind) for row in calls}
    return any(row.is_idle for row in calls) or len(kinds) > len({row.intrinsic for row in calls})


def _label_column(label: str, optional: bool = False) -> Column:
    def show(row: Row) -> str:
        return clean(row.labels.get(label, ""))

    return Column(label, show, right=False, flexible=True, optional=optional)


def _place_columns(by: str, places: Places) -> list[Column]:
    if by == "function":
        file = _ending_column("file", lambda row: places.file(row.labels.get("file", "")), optional=True)
        return [_label_column("function"), file]
    site = _ending_column("site", lambda row: places.line(row.site) if row.site else "")
    return [site, _label_column("function", optional=True)]


def _ending_column(title: str, show: Callable[[Row], str], optional: bool = False) -> Column:
    """A column of names that differ mostly in their ends."""
    return Column(
        title, lambda row: clean(show(row)), right=False, flexible=True, optional=optional, keep="end"
    )


def _number_columns(profile: Profile, by: str, log: Log) -> list[Column]:
    whole_ns = profile.total.wall_ns
    scale = scale_for(whole_ns)

    def time(row: Row, ns: int) -> str:
        if not row.is_timed:
            return ""
        uncertain = is_uncertain(ns, row.sums.calls, log.inside_ns, log.resolution_ns)
        return ("~" if uncertain else "") + scale.show(ns)

    columns = [Column("calls", lambda row: _count(row.sums.calls, row))]
    if any(row.sums.errors for row in profile.rows):
        columns.append(Column("errors", lambda row: _count(row.sums.errors, row), optional=True))
    columns += [
        Column("self wall", lambda row: time(row, row.sums.self_wall_ns)),
        Column("self CPU", lambda row: time(row, row.sums.self_cpu_ns)),
        Column("wait", lambda row: time(row, wait_ns(row))),
        Column("inclusive", lambda row: time(row, row.sums.wall_ns) if _has_inclusive(row) else ""),
        Column(
            "share", lambda row: percent(row.sums.self_wall_ns, whole_ns) if row.is_timed else "", optional=True
        ),
    ]
    if any(row.is_of_code for row in profile.rows):
        columns[_place(columns, "wait") : _place(columns, "wait")] = [_code_margin_column()]
        columns[_place(columns, "share") : _place(columns, "share")] = _code_columns(scale)
    if any(row.margin for row in profile.rows):
        place = _place(columns, "self wall")
        columns.insert(place + 1, _margin_column(is_time=True))
        columns.insert(1, _margin_column(is_time=False))
    if any(row.counted for row in profile.rows):
        columns.insert(1, Column("not timed", lambda row: _count(row.counted, row)))
    if any(row.sums.bytes for row in profile.rows):
        columns.append(Column("bytes", lambda row: _count(row.sums.bytes, row), optional=True))
    if any(row.sums.rows for row in profile.rows):
        columns.append(Column("rows", lambda row: _count(row.sums.rows, row), optional=True))
    columns += [Column(counter_title(each), partial(count_shown, counter=each)) for each in profile.counters]
    if by == "kind":
        columns.append(Column("", lambda row: clean(row.comment), right=False, flexible=True))
    elif any(row.passed for row in profile.rows):
        columns.append(Column("uncontended", lambda row: _count(row.passed, row), optional=True))
    return columns


def _place(columns: Sequence[Column], title: str) -> int:
    return [each.title for each in columns].index(title)


def _code_margin_column() -> Column:
    """How far the CPU time of sampled code may be off, 19 times of 20."""

    def show(row: Row) -> str:
        return margin_of_samples(row.code.margin_ns, row.sums.self_cpu_ns) if row.code else ""

    return Column("\u00b1 95 %", show, optional=True)


def _code_columns(scale: Scale) -> list[Column]:
    """What the wait of sampled code is: for the interpreter lock, for a processor, the rest unexplained."""

    def column(title: str, ns_of: Callable[[Code], int]) -> Column:
        return Column(title, lambda row: scale.show(ns_of(row.code)) if row.code else "", optional=True)

    return [
        column("GIL", lambda code: code.lock_ns),
        column("wait for CPU", lambda code: code.processor_ns),
        column("unexplained", lambda code: code.unexplained_ns),
    ]


def _margin_column(is_time: bool) -> Column:
    """How far the column before it may be off, 19 times of 20."""

    def show(row: Row) -> str:
        if not row.margin:
            return ""
        figures = (row.margin.self_wall_ns, row.sums.self_wall_ns) if is_time else (row.margin.calls, row.sums.calls)
        return margin_percent(*figures)

    return Column("\u00b1 95 %", show)


def _has_inclusive(row: Row) -> bool:
    """Whether the inclusive time is known: closing rows, and sums of rows, have none."""
    return row.is_of_calls and row.sums.wall_ns >= row.sums.self_wall_ns


def _count(number: int, row: Row) -> str:
    return f"{number:,}" if row.is_of_calls else ""
