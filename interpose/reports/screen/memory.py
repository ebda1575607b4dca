"""What the first screen says of memory: of the process with the most, where it grew, which lines allocated it."""

from __future__ import annotations

from collections.abc import Iterator

from interpose.analysis.heap import heaps, ranked, when_last
from interpose.analysis.profile.memory import Growth, Memory, memories
from interpose.experiments.model.experiment import Experiment
from interpose.reports.formats.short_paths import Places, Shown
from interpose.reports.formats.table import clean
from interpose.reports.formats.units import percent, size

# A process that grew by less, and has less than this share of its limit, is not mentioned.
_GREW_BYTES, _SHARE_OF_LIMIT = 64 << 20, 0.5
SHORT_SHARE = 0.9  # from here on there is too little
_LINES = 3
_LEAST_PART = 0.05  # of its growth, for a line to be named


def memory_lines(experiment: Experiment, cwd: str, shown: Shown | None = None) -> Iterator[str]:
    """The peak, and the lines during or before which most of it came, nothing if there is nothing to say; where the
    heap was recorded, which lines had allocated it."""
    yield from _resident_lines(experiment, cwd, shown)
    yield from _heap_lines(experiment, cwd, shown)


def _heap_lines(experiment: Experiment, cwd: str, shown: Shown | None) -> Iterator[str]:
    found = heaps(experiment)
    if not found:
        return
    most = found[0]
    whose = f" (process {most.process.log.pid})" if len(experiment.processes) > 1 else ""
    at_end = f", {size(most.total.end_bytes)} in use {when_last(most)}"
    yield f" {'heap':<10}{size(most.total.peak_bytes):>9}  at its peak{at_end}{whose}"
    rows = [row for row in ranked(most, lambda each: each.peak_bytes) if row[0].file][:_LINES]
    places = Places([site.file for site, _ in rows], cwd, shown)
    for site, figures in rows:
        if figures.peak_bytes and figures.peak_bytes >= _LEAST_PART * most.total.peak_bytes:
            where = clean(f"allocated at {places.line(site)} {site.function}")
            yield f" {'':<10}{size(figures.peak_bytes):>9}  {where}"
    more = most.without_line
    if more:
        left_out = f"in more places than fit: {size(more.bytes)} allocated there have no line"
        yield f" {'':<10}{size(more.peak_bytes):>9}  {left_out}"


def _resident_lines(experiment: Experiment, cwd: str, shown: Shown | None) -> Iterator[str]:
    found = memories(experiment)
    if not found or (found[0].grew_bytes < _GREW_BYTES and not _is_near_limit(found[0])):
        return
    most = found[0]
    whose = f" (process {most.process.log.pid})" if len(experiment.processes) > 1 else ""
    of_limit = f", {percent(most.peak_bytes, most.limit_bytes)} of {size(most.limit_bytes)}"
    share = of_limit if _is_near_limit(most) else ""
    yield f" {'memory':<10}{size(most.peak_bytes):>9}  at its peak{share}, {size(most.first_bytes)} at first{whose}"
    named = [each for each in most.growth[:_LINES] if each.grew_bytes >= _LEAST_PART * most.grew_bytes]
    places = Places([each.site.file for each in named], cwd, shown)
    for each in named:
        yield f" {'':<10}{'+' + size(each.grew_bytes):>9}  {_where(each, places)}"
    if named and (named[0].waited or 2 * named[0].grew_bytes < most.grew_bytes) and not heaps(experiment):
        yield f" {'':<10}{'':>9}  to see which lines allocated it: INTERPOSE=calls,heap"


def _where(growth: Growth, places: Places) -> str:
    place = f"{places.line(growth.site)} " if growth.site.file else ""
    return clean(_when(growth, f"{place}{growth.site.function}"))


def _when(growth: Growth, code: str) -> str:
    return f"before {code} waited" if growth.waited else f"while {code} ran"


def _is_near_limit(memory: Memory) -> bool:
    return bool(memory.limit_bytes) and memory.peak_bytes >= _SHARE_OF_LIMIT * memory.limit_bytes


def shortages(experiment: Experiment) -> Iterator[str]:
    """A warning for each process that had nearly all the memory it may have."""
    for each in memories(experiment):
        if each.limit_bytes and each.peak_bytes >= SHORT_SHARE * each.limit_bytes:
            most = next((growth for growth in each.growth[:1] if growth.site.file), None)
            where = f"; most came {_when(most, most.site.function)}, {most.site.file}:{most.site.line}" if most else ""
            used = f"{size(each.peak_bytes)} of the {size(each.limit_bytes)} of memory"
            yield clean(f"process {each.process.log.pid} had {used} that it may have{where}")
