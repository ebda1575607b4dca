"""What the code of threads did along time, from samples: it ran, waited for CPU, or for something unknown.

A sample stands for the time since the one before it, a tenth of a second at most. A thread that was ready to run when
it was sampled had run for as long as its CPU time says, and then waited for CPU. Where a slice has calls,
samples have what these leave of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from interpose.analysis.profile.profiled import numbers_of
from interpose.analysis.profile.weights import is_code
from interpose.experiments.format.records import SampleRecord
from interpose.experiments.model.process import Process
from interpose.experiments.model.sampled import READY, RECORDS, RUNS, WAITS, Sampled
from interpose.kinds import CONTAINERS

if TYPE_CHECKING:
    from interpose.analysis.time.timeline import Lane, Timeline

RUNNING, PROCESSOR, UNEXPLAINED = STATES = ("running", "processor", "unexplained")
LONGEST_NS = 100_000_000


def lay_samples(made: Timeline, moved_ns: Mapping[Process, int]) -> None:
    """Put the samples of all processes into the lanes of their threads; a process's clock is `moved_ns` ahead."""
    for process in moved_ns:
        lanes = {lane.thread: lane for lane in made.lanes if lane.process is process}
        if lanes:
            _lay(made, process, lanes, made.start_ns - moved_ns[process])
    for lane in made.lanes:
        _fit(made, lane)


def _lay(made: Timeline, process: Process, lanes: Mapping[int, Lane], start_ns: int) -> None:
    containers = numbers_of(process, CONTAINERS)
    before: dict[int, tuple[int, int]] = {}
    for sample in Sampled(process).samples():
        lane = lanes.get(sample.thread)
        if lane is None:
            continue
        known_ns, counted_ns = before.get(sample.thread, (sample.time_ns, sample.cpu_ns))
        before[sample.thread] = sample.last_ns, sample.cpu_ns
        if is_code(sample, containers):
            begin_ns = max(known_ns, sample.time_ns - LONGEST_NS)
            for state, until_ns in _states(sample, begin_ns, sample.cpu_ns - counted_ns):
                slices = lane.kinds.setdefault(state, [0] * made.slices)
                _put(slices, made.slice_ns, begin_ns - start_ns, until_ns - start_ns)
                begin_ns = until_ns


def _states(sample: SampleRecord, begin_ns: int, cpu_ns: int) -> Iterator[tuple[str, int]]:
    """What the thread did since `begin_ns`, when it used `cpu_ns`: states, each with its end."""
    if sample.state == RUNS:
        yield RUNNING, sample.last_ns
    elif sample.state == WAITS:
        yield UNEXPLAINED, sample.last_ns
    elif sample.state in (READY, RECORDS):
        yield RUNNING, min(begin_ns + max(cpu_ns, 0), sample.last_ns)
        yield PROCESSOR, sample.last_ns


def _put(slices: list[int], slice_ns: int, begin: int, end: int) -> None:
    for place in range(max(begin // slice_ns, 0), min(end // slice_ns, len(slices) - 1) + 1):
        slices[place] += max(min(end, (place + 1) * slice_ns) - max(begin, place * slice_ns), 0)


def _fit(made: Timeline, lane: Lane) -> None:
    """Limit the states to what the calls leave of a slice; calls that contain code leave their time to it."""
    states = [lane.kinds[state] for state in STATES if state in lane.kinds]
    containers = [lane.kinds[kind] for kind in CONTAINERS if kind in lane.kinds]
    calls = [slices for kind, slices in lane.kinds.items() if kind not in (*STATES, *CONTAINERS)]
    for place in range(made.slices if states else 0):
        left_ns = max(made.slice_ns - sum(slices[place] for slices in calls), 0)
        sampled_ns = sum(slices[place] for slices in states)
        for slices in states if sampled_ns > left_ns else ():
            slices[place] = slices[place] * left_ns // sampled_ns
        within_ns = sum(slices[place] for slices in containers)
        room_ns = left_ns - min(sampled_ns, left_ns)
        for slices in containers if within_ns > room_ns else ():
            slices[place] = slices[place] * room_ns // within_ns
