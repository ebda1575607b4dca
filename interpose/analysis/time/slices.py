"""An experiment by slices of time: what the calls that began in each took, and what the process used meanwhile.

Calls are those that began in a slice, with all of their time. What the process used is known between two samples; where
a slice ends between them, it is divided as the time is, and so estimated.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from interpose.analysis.analysis import Analysis
from interpose.analysis.calls.figures import Figures, Vector, figures_of, put
from interpose.analysis.consolidation.consolidate import Consolidator, fastest_consolidator
from interpose.analysis.consolidation.records import Records
from interpose.experiments.model.experiment import Experiment
from interpose.experiments.model.process import Process

_BY = ("thread", "intrinsic")


@dataclass
class Slice:
    """A stretch of time from `start_ns` on: the figures of the calls, CPU time and run delay of the processes."""

    start_ns: int
    stop_ns: int
    calls: Vector = field(default_factory=list)
    cpu_ns: float = 0
    run_delay_ns: float = 0


@dataclass
class Slices:
    """The slices; `samples` is how many differences of samples they are estimated from, `has_events` whether calls are
    there one by one."""

    slices: list[Slice]
    figures: Figures
    samples: int = 0
    has_events: bool = True


def slices_of(analysis: Analysis, number: int) -> Slices:
    """The time of an analysis in a number of equal slices."""
    experiment = analysis.experiment
    figures = figures_of(experiment)
    first, last = _bounds(experiment)
    edges = [first + (last - first) * place // number for place in range(number)] + [last]
    made = Slices([Slice(start, stop, figures.nothing()) for start, stop in pairwise(edges)], figures)
    for process in experiment.processes:
        made.samples += _add_samples(process, made.slices)
        made.has_events = made.has_events and has_all_events(process)
        if process.events:
            _add_calls(process, made, analysis.consolidator or fastest_consolidator())
    return made


def has_all_events(process: Process) -> bool:
    """Whether the calls of `process` are there one by one; false if only their records are kept."""
    if not process.consolidated:
        return True
    there = sum(head.used for _, head in process.events.heads()) if process.events else 0
    return there >= sum(thread.record.recorded for thread in process.threads)


def _bounds(experiment: Experiment) -> tuple[int, int]:
    """The first and the last instant of which anything is known."""
    starts, ends = [], []
    for process in experiment.processes:
        instants = [process.log.start_ns, *(sample.time_ns for sample in process.overview)]
        for thread in process.threads:
            instants += [each for each in (thread.record.start_ns, thread.record.end_ns) if each]
        heads = [head for _, head in process.events.heads()] if process.events else []
        instants += [head.last_ns for head in heads]
        starts.append(min(instants))
        ends.append(max(instants))
    return min(starts), max(max(ends), min(starts) + 1)


def _add_samples(process: Process, slices: Sequence[Slice]) -> int:
    used = 0
    for before, after in pairwise(process.overview):
        elapsed_ns = after.time_ns - before.time_ns
        if elapsed_ns <= 0:
            continue
        used += 1
        for each in slices:
            part = min(after.time_ns, each.stop_ns) - max(before.time_ns, each.start_ns)
            if part > 0:
                each.cpu_ns += max(after.cpu_ns - before.cpu_ns, 0) * part / elapsed_ns
                each.run_delay_ns += max(after.run_delay_ns - before.run_delay_ns, 0) * part / elapsed_ns
    return used


def _add_calls(process: Process, made: Slices, consolidator: type[Consolidator]) -> None:
    """Put each event into the slice in which it began, block by block."""
    assert process.events is not None
    layout = process.events.layout
    starts = layout.picker(("start_ns",))
    of = [consolidator(layout, _BY) for _ in made.slices]
    edges = [each.start_ns for each in made.slices[1:]]

    def place_of(instant_ns: int) -> int:
        return bisect_right(edges, instant_ns)

    for block in process.events.blocks():
        if place_of(block.head.first_ns) == place_of(block.head.last_ns):
            of[place_of(block.head.first_ns)].add(block.events)
            continue
        size = layout.record_bytes
        for number, (start_ns,) in enumerate(starts.many(block.events)):
            of[place_of(start_ns)].add(block.events[number * size : (number + 1) * size])
    for each, consolidated in zip(made.slices, of, strict=True):
        for (_, intrinsic), sums in Records(_BY, consolidated.records()).sums().items():
            put(each.calls, made.figures.of_calls(process.intrinsic(intrinsic).kind, sums))
