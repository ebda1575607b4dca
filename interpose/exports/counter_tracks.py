"""Counters along time, for formats that draw them: processors in use and largest memory of a process, from the samples
of its overview, and what was counted beside time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import Enum
from typing import NamedTuple

from interpose.analysis.profile.counts import along_time
from interpose.analysis.time.usage import Usage, usages
from interpose.experiments.model.experiment import Experiment
from interpose.experiments.model.process import Process

_LARGEST = (1 << 63) - 1


class Unit(Enum):
    """What the values of a counter are."""

    RATIO = "ratio"
    COUNT = "count"
    BYTES = "bytes"


class CounterTrack(NamedTuple):
    """A counter of one process: its value from each instant on, in the order of time."""

    name: str
    unit: Unit
    values: list[tuple[int, float]]


def usages_by_process(experiment: Experiment) -> dict[Process, list[Usage]]:
    """What each process used between two samples of its overview."""
    used: dict[Process, list[Usage]] = {process: [] for process in experiment.processes}
    for usage in usages(experiment):
        used[usage.process].append(usage)
    return used


def counter_tracks(process: Process, used: Sequence[Usage]) -> Iterator[CounterTrack]:
    """The counters of a process: the use until the next sample, the memory at the sample, and the sums of what was
    counted beside time at each sample."""
    if used:
        end_ns = used[-1].start_ns + used[-1].elapsed_ns
        rates = [(each.start_ns, each.used["cpu_ns"] / each.elapsed_ns if each.elapsed_ns else 0.0) for each in used]
        yield CounterTrack("processors in use", Unit.RATIO, [*rates, (end_ns, 0.0)])
        memory = [(each.start_ns + each.elapsed_ns, each.max_rss_bytes) for each in used]
        yield CounterTrack("largest memory", Unit.BYTES, [*memory])
    for name, sums in along_time(process).items():
        yield CounterTrack(name, Unit.COUNT, [(time_ns, min(so_far, _LARGEST)) for time_ns, so_far in sums])
