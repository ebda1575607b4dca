"""What each process used between two samples of its overview."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

from interpose.experiments.format.records import Overview
from interpose.experiments.model.experiment import Experiment
from interpose.experiments.model.process import Process

# Counters that only grow; the difference between two samples is the use between them.
COUNTED = (
    "cpu_ns",
    "user_ns",
    "system_ns",
    "run_delay_ns",
    "minor_faults",
    "major_faults",
    "in_blocks",
    "out_blocks",
    "voluntary_switches",
    "involuntary_switches",
)


class Usage(NamedTuple):
    """What a process used from `start_ns` on for `elapsed_ns`, by the names of `COUNTED`.

    `max_rss_bytes` is its largest resident size until then. Where `is_gap`, no call ended for twice the time after
    which a sample is due, so the figures are those of a longer time than was asked for.
    """

    process: Process
    start_ns: int
    elapsed_ns: int
    used: dict[str, int]
    max_rss_bytes: int
    is_gap: bool


def usages(experiment: Experiment) -> Iterator[Usage]:
    """The use between each two samples, process by process, in the order of time."""
    for process in experiment.processes:
        for before, after in pairwise(process.overview):
            if after.time_ns >= before.time_ns:
                yield _between(process, before, after)


def _between(process: Process, before: Overview, after: Overview) -> Usage:
    used = {name: max(getattr(after, name) - getattr(before, name), 0) for name in COUNTED}
    elapsed_ns = after.time_ns - before.time_ns
    is_gap = 0 < 2 * before.every_ns < elapsed_ns
    return Usage(process, before.time_ns, elapsed_ns, used, after.max_rss_bytes, is_gap)
