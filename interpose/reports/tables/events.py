"""The table of the event trace: a row for each call, in the order of their beginnings."""

from __future__ import annotations

from collections.abc import Iterable

from interpose.analysis.calls.groupings import process_label, task_label, thread_label
from interpose.analysis.calls.rows import START_UP
from interpose.analysis.calls.trace import ENDED, Traced
from interpose.experiments.format.trace_contexts import in_words
from interpose.experiments.model.experiment import Experiment
from interpose.experiments.model.stacks import Site
from interpose.reports.formats.short_paths import Places
from interpose.reports.formats.table import Column, Table, Values, clean
from interpose.reports.formats.units import SECOND_NS, count, duration

NAMES = (
    "since_ns",
    "process",
    "thread",
    "task",
    "task_name",
    "call",
    "parent",
    "depth",
    "kind",
    "intrinsic",
    "wall_ns",
    "cpu_ns",
    "self_wall_ns",
    "self_cpu_ns",
    "bytes",
    "rows",
    "site",
    "function",
    "detail",
    "error",
    "state",
    "trace_parent",
    "other_spans",
)


def events_table(experiment: Experiment, rows: Iterable[Traced]) -> Table:
    """The table of the events `rows` of `experiment`; they are taken one after the other."""
    start_ns = experiment.founder.log.start_ns
    labels = _ThreadLabels()
    places = Places([], experiment.founder.log.cwd)
    columns = [
        Column("since start", lambda row: f"{(row.event.start_ns - start_ns) / SECOND_NS:.6f} s"),
        *_who_columns(experiment, labels),
        Column("self wall", lambda row: _shown(_self_wall_ns(row)) if row.state == ENDED else _open(row.state)),
        Column("self CPU", lambda row: _shown(_self_cpu_ns(row))),
        Column("inclusive", lambda row: _shown(row.event.wall_ns if _has_wall(row) else None)),
        Column("bytes", _shown_moved, optional=True),
        Column("intrinsic", lambda row: clean("  " * row.depth + _name(row)), right=False, flexible=True),
        Column("site", lambda row: clean(_where(row, places)), right=False, flexible=True),
        Column("detail", lambda row: clean(_detail(row)), right=False, flexible=True),
    ]
    return Table(NAMES, lambda row: _values(row, start_ns, labels), columns, rows, shown=places.shown)


def _who_columns(experiment: Experiment, labels: _ThreadLabels) -> list[Column]:
    """The process and the thread, where there are several; the task, where there are any."""
    columns = []
    if len(experiment.processes) > 1:
        columns.append(Column("process", lambda row: row.process.lineage or "founder", right=False))
    if any(len(process.threads) > 1 for process in experiment.processes):
        columns.append(Column("thread", lambda row: labels.show(row).partition(" ")[0], right=False))
    if any(process.task_names for process in experiment.processes):
        columns.append(Column("task", lambda row: clean(task_label(row.process, row.event.task)), right=False))
    return columns


class _ThreadLabels:
    """The label of each thread, looked up once."""

    def __init__(self) -> None:
        self._labels: dict[tuple[str, int], str] = {}

    def show(self, row: Traced) -> str:
        key = (row.process.lineage, row.event.thread)
        if key not in self._labels:
            self._labels[key] = thread_label(row.process, row.event.thread)
        return self._labels[key]


def _values(row: Traced, start_ns: int, labels: _ThreadLabels) -> Values:
    process, event, site = row.process, row.event, _site(row)
    ended = row.state == ENDED
    values = (
        event.start_ns - start_ns,
        process_label(process),
        labels.show(row),
        event.task or None,
        process.task_names.get(event.task),
        event.call,
        event.parent,
        row.depth,
        process.intrinsic(event.intrinsic).kind,
        _name(row),
        event.wall_ns if _has_wall(row) else None,
        event.cpu_ns if ended else None,
        _self_wall_ns(row),
        _self_cpu_ns(row),
        _moved(row, "bytes"),
        _moved(row, "rows"),
        f"{site.file}:{site.line}" if site else None,
        site.function if site else None,
        process.string(event.detail) or None,
        process.string(event.error) or None,
        row.state,
        _trace_parent(row),
        _other_spans(row),
    )
    return dict(zip(NAMES, values, strict=True))


def _moved(row: Traced, what: str) -> int:
    """How many `bytes`, or `rows`, the call moved."""
    return row.event.bytes if row.process.intrinsic(row.event.intrinsic).moves == what else 0


def _trace_parent(row: Traced) -> str | None:
    """The `traceparent` that a request came with, for the call that served it."""
    found = row.process.trace_contexts.get((row.event.thread, row.event.call))
    return found.as_header() if found else None


def _other_spans(row: Traced) -> str | None:
    """The trace and span that each other tracer had active, for a transaction."""
    found = row.process.active_spans.get((row.event.thread, row.event.call), ())
    return in_words(found) or None


def _shown_moved(row: Traced) -> str:
    rows = " rows" if _moved(row, "rows") else ""
    return f"{row.event.bytes:,}{rows}" if row.event.bytes else ""


def _self_wall_ns(row: Traced) -> int | None:
    """Wall time without the calls recorded inside; None while the call is in progress."""
    return max(row.event.wall_ns - row.event.inner_wall_ns, 0) if _has_wall(row) else None


def _has_wall(row: Traced) -> bool:
    """Whether its wall time is known: it has ended, and is no sample."""
    return row.state == ENDED and not row.process.log.interval


def _self_cpu_ns(row: Traced) -> int | None:
    return max(row.event.cpu_ns - row.event.inner_cpu_ns, 0) if row.state == ENDED else None


def _shown(ns: int | None) -> str:
    return "" if ns is None else duration(ns)


def _name(row: Traced) -> str:
    if row.starting:
        return START_UP
    return row.process.intrinsic(row.event.intrinsic).name


def _site(row: Traced) -> Site | None:
    return row.process.own_line(row.event.stack) if row.event.stack else None


def _where(row: Traced, places: Places) -> str:
    site = None if row.starting else _site(row)
    return places.named(site) if site else ""


def _open(state: str) -> str:
    return "so far" if state == "running" else "open"


def _detail(row: Traced) -> str:
    """The error of the call, and its detail."""
    if row.starting:
        return f"{count(row.starting, 'call')} before the program's first line (--startup)"
    error, detail = row.process.string(row.event.error), row.process.string(row.event.detail)
    return f"raised {error}  {detail}" if error else detail
