"""The table of what processes allocated: a row for each line or function of each process."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from interpose.analysis.calls.groupings import process_label
from interpose.analysis.heap import Allocated, Heap, ranked, when_last
from interpose.experiments.model.stacks import Site
from interpose.reports.formats.short_paths import Places
from interpose.reports.formats.table import Column, Table, Values, clean
from interpose.reports.formats.units import count, duration, margin_percent, size

NAMES = (
    "process",
    "pid",
    "file",
    "line",
    "function",
    "peak_bytes",
    "peak_margin_bytes",
    "end_bytes",
    "end_margin_bytes",
    "allocated_bytes",
    "allocations",
    "frees",
)
SORTS: dict[str, Callable[[Allocated], int]] = {
    "peak": lambda each: each.peak_bytes,
    "end": lambda each: each.end_bytes,
    "allocated": lambda each: each.bytes,
}
LONGEST_TICK_NS = 10_000_000  # of the kernel's clock, by which a peak is timed: the time may be one too early


@dataclass(frozen=True)
class HeapRow:
    """A row: of a line or a function of a process; without a site, the sum of rows that are not shown."""

    heap: Heap
    site: Site | None
    figures: Allocated


def heap_rows(heaps: Sequence[Heap], sort: str, limit: int | None) -> list[HeapRow]:
    """The rows of each process, the largest peak first. With a `limit`: at most so many of each, without those that
    have nothing of what `sort` says, and a last one for all others. Each column adds up to the process's total."""
    return [row for heap in heaps for row in _rows_of(heap, sort, limit)]


def _rows_of(heap: Heap, sort: str, limit: int | None) -> Iterator[HeapRow]:
    rows = ranked(heap, SORTS[sort])
    with_some = sum(SORTS[sort](figures) > 0 for _, figures in rows)
    end = min(limit, with_some) if limit else len(rows)
    shown, hidden = rows[:end], rows[end:]
    yield from (HeapRow(heap, site, figures) for site, figures in shown)
    others = Allocated()
    for _, figures in hidden:
        others.add(figures)
    if hidden:
        yield HeapRow(heap, None, others)


def heap_table(rows: Sequence[HeapRow], cwd: str) -> Table:
    """The table of `rows`."""
    places = Places([row.site.file for row in rows if row.site], cwd)
    columns = [
        Column("at peak", lambda row: size(row.figures.peak_bytes)),
        Column("margin", lambda row: _margin(row.figures), optional=True),
        Column("at end", lambda row: size(row.figures.end_bytes)),
        Column("allocated", lambda row: size(row.figures.bytes)),
        Column("times", lambda row: f"{row.figures.allocations:,}"),
        Column("function", lambda row: _name(row), right=False, flexible=True, keep="end"),
        Column("line", lambda row: _where(row, places), right=False, flexible=True, keep="end"),
    ]
    if len({id(row.heap) for row in rows}) > 1:
        columns.insert(0, Column("pid", lambda row: str(row.heap.process.log.pid)))
    return Table(NAMES, _values, columns, rows, shown=places.shown)


def summary(heap: Heap) -> str:
    """A process's figures as a sentence."""
    total, log = heap.total, heap.process.log
    after_ns = heap.peak_ns - log.start_ns
    first = f"within {duration(2 * LONGEST_TICK_NS)} of its start"
    after = f"after {duration(after_ns)}" if after_ns >= LONGEST_TICK_NS else first
    every = size(heap.every_bytes)
    all_of_them = "all recorded" if heap.is_whole else "not all recorded by line"
    how = f"one for each {every} recorded, so figures are estimates" if heap.every_bytes else all_of_them
    lost = f"; {count(heap.lost, 'sample')} lost: too many were live at once" if heap.lost else ""
    more = heap.without_line
    lost += f"; {size(more.bytes)} of {count(more.allocations, 'allocation')} in more places than fit" if more else ""
    return (
        f"process {log.pid}: {size(total.peak_bytes)} at its peak {after}, "
        f"{size(total.end_bytes)} {when_last(heap)}, "
        f"{size(total.bytes)} allocated {total.allocations:,} times ({how}{lost})"
    )


def _margin(figures: Allocated) -> str:
    return margin_percent(figures.peak_margin_bytes, figures.peak_bytes)


def _name(row: HeapRow) -> str:
    return clean(row.site.function) if row.site else "(other rows)"


def _where(row: HeapRow, places: Places) -> str:
    if row.site is None or not row.site.file:
        return ""
    return clean(places.line(row.site) if row.site.line else places.file(row.site.file))


def _values(row: HeapRow) -> Values:
    figures, site = row.figures, row.site
    return {
        "process": process_label(row.heap.process),
        "pid": row.heap.process.log.pid,
        "file": site.file if site else None,
        "line": (site.line or None) if site else None,
        "function": site.function if site else None,
        "peak_bytes": figures.peak_bytes,
        "peak_margin_bytes": figures.peak_margin_bytes,
        "end_bytes": figures.end_bytes,
        "end_margin_bytes": figures.end_margin_bytes,
        "allocated_bytes": figures.bytes,
        "allocations": figures.allocations,
        "frees": figures.frees,
    }
