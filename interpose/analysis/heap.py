"""What processes allocated, by line of the program's own code: sampled, so figures are estimates."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from interpose.analysis.profile.profiled import NO_PYTHON
from interpose.experiments.format.records import HeapRecord, HeapSiteRecord
from interpose.experiments.model.experiment import Experiment
from interpose.experiments.model.process import Process
from interpose.experiments.model.stacks import Site

SITES_AT_MOST = 1 << 22
# What has no row of its own, as the recorder had no room for so many.
MORE_SITES = Site("", 0, "more places than fit", False)
_MORE = 2  # in a site's `used`
_FULL_BEFORE = (1 << 16) + 1  # sites in an experiment from when those that did not fit counted as without Python code
_95_PERCENT = 1.96  # standard deviations


@dataclass
class Allocated:
    """Bytes that were live at the process's peak and at its end, and all that were allocated; how many allocations and
    frees these were. Squares of bytes: how much the first two vary from sampling to sampling."""

    peak_bytes: int = 0
    end_bytes: int = 0
    bytes: int = 0
    allocations: int = 0
    frees: int = 0
    peak_variance: float = 0.0
    end_variance: float = 0.0

    @property
    def peak_margin_bytes(self) -> int:
        """How far from the truth `peak_bytes` is at most, 19 times of 20."""
        return round(_95_PERCENT * math.sqrt(max(self.peak_variance, 0)))

    @property
    def end_margin_bytes(self) -> int:
        """The same of `end_bytes`."""
        return round(_95_PERCENT * math.sqrt(max(self.end_variance, 0)))

    def add(self, other: Allocated) -> None:
        """Add the figures of `other`."""
        self.peak_bytes += other.peak_bytes
        self.end_bytes += other.end_bytes
        self.bytes += other.bytes
        self.allocations += other.allocations
        self.frees += other.frees
        self.peak_variance += other.peak_variance
        self.end_variance += other.end_variance


@dataclass(frozen=True)
class Heap:
    """What a process allocated from when recording began: by line, or function, and altogether. One allocation for each
    `every_bytes` was sampled; 0: all were recorded. `lost` of `samples` had no room. `peak_ns`: when the peak was
    (monotonic). `has_ended`: its end was seen, so what is in use at the end is; else it is what was last. The row of
    MORE_SITES, if there is one, has what was not kept by line."""

    process: Process
    peak_ns: int
    every_bytes: int
    samples: int
    lost: int
    has_ended: bool
    rows: dict[Site, Allocated] = field(repr=False)
    total: Allocated

    @property
    def without_line(self) -> Allocated | None:
        """What is in no row of a line because there were more places than fit; None if nothing is."""
        return self.rows.get(MORE_SITES)

    @property
    def is_whole(self) -> bool:
        """Whether all that was recorded is in its row."""
        return not self.lost and self.without_line is None


def when_last(heap: Heap) -> str:
    """Of when what is in use at the end is, in words."""
    return "at the end" if heap.has_ended else "when last seen"


def heaps(experiment: Experiment, by_function: bool = False) -> list[Heap]:
    """Of each process whose heap was recorded, the largest peak first."""
    found = [heap for process in experiment.processes if (heap := heap_of(process, by_function))]
    return sorted(found, key=lambda each: -each.total.peak_bytes)


def heap_of(process: Process, by_function: bool = False) -> Heap | None:
    """Of one process; None if its heap was not recorded."""
    record = _whole(process)
    if record is None:
        return None
    rows: dict[Site, Allocated] = {}
    total = Allocated()
    place_of = _function_of if by_function else _line_of
    table = process.raw_table("heap_sites")
    sites, has_more = 0, False
    for _, site, _ in table.bounded(SITES_AT_MOST) if table else ():
        sites += site.used > 0
        has_more |= site.used == _MORE
        if site.used and (site.used != _MORE or site.allocations):
            figures = _figures(site, record)
            place = MORE_SITES if site.used == _MORE else place_of(process, site.stack)
            rows.setdefault(place, Allocated()).add(figures)
            total.add(figures)
    if sites == _FULL_BEFORE and not has_more:
        rows[MORE_SITES] = rows.pop(NO_PYTHON, Allocated())
    has_ended = record.end_ns > 0
    return Heap(process, record.peak_ns, record.every_bytes, record.samples, record.left_out, has_ended, rows, total)


def ranked(heap: Heap, key: Callable[[Allocated], int]) -> list[tuple[Site, Allocated]]:
    """All rows, those with the most of it first; of those with as much, the one that allocated more."""
    return sorted(heap.rows.items(), key=lambda row: (-key(row[1]), -row[1].bytes, row[0].file, row[0].line))


def _whole(process: Process) -> HeapRecord | None:
    table = process.raw_table("heap")
    for _, record, _ in table.bounded(1) if table else ():
        if record.start_ns:
            found: HeapRecord = record
            return found
    return None


def _figures(site: HeapSiteRecord, whole: HeapRecord) -> Allocated:
    """Where nothing has changed since the peak, what is live was live then."""
    live_bytes = site.bytes - site.freed_bytes
    peak_bytes = site.peak_bytes if site.peaks == whole.peaks else live_bytes
    each = _variance(site, whole.every_bytes)
    return Allocated(
        peak_bytes, live_bytes, site.bytes, site.allocations, site.frees, each * peak_bytes, each * live_bytes
    )


def _variance(site: HeapSiteRecord, every_bytes: int) -> float:
    """How much an estimate varies, squared, for each byte of it, with allocations of the stack's average size.

    A large allocation is nearly always sampled: then it is exact.
    """
    average_bytes = site.bytes / max(site.allocations, 1)
    if not every_bytes or not average_bytes:
        return 0.0
    seen = -math.expm1(-average_bytes / every_bytes)
    return (1 - seen) * average_bytes / seen if seen else float(every_bytes)


def _line_of(process: Process, stack: int) -> Site:
    return process.own_line(stack) or NO_PYTHON


def _function_of(process: Process, stack: int) -> Site:
    return replace(_line_of(process, stack), line=0)
